import jsxA11y from "eslint-plugin-jsx-a11y";
import reactHooks from "eslint-plugin-react-hooks";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist", "src/api/generated", "node_modules", "test-results", "build", "eslint.config.js"] },
  ...tseslint.configs.strictTypeChecked,
  reactHooks.configs.flat.recommended,
  jsxA11y.flatConfigs.recommended,
  { languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } } },
  {
    rules: {
      "max-lines": ["error", { max: 250, skipBlankLines: true, skipComments: true }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: { attributes: false } }],
      // TanStack Router ends a route's loader by throwing its redirect and not-found values.
      "@typescript-eslint/only-throw-error": "off",
      // The virtualizer returns new functions at each draw, by design: this rule only says that its component is not memoised.
      "react-hooks/incompatible-library": "off",
      "no-restricted-imports": [
        "error",
        {
          patterns: [
            { group: ["@/api/client", "@/api/generated", "@/api/generated/*"], message: "Only services call the API." },
          ],
        },
      ],
    },
  },
  {
    files: ["src/services/**", "src/api/**", "src/test/**", "src/main.tsx"],
    rules: { "no-restricted-imports": "off" },
  },
  { files: ["e2e/**", "**/*.test.*"], rules: { "max-lines": "off", "no-restricted-imports": "off" } },
);
