import text from "../../../examples/digits/sweep.yaml?raw";

/** The example that the repository has: examples/digits/sweep.yaml, as it is. */
export const exampleText: string = text;
