package api_test

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

// constants are the values of the typed text constants of a package, by type.
func constants(t *testing.T, dir string) map[string][]string {
	t.Helper()

	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)

	values := make(map[string][]string)

	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}

		file, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)

		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is || len(spec.Values) != 1 {
				return true
			}

			kind, named := spec.Type.(*ast.Ident)
			text, literal := spec.Values[0].(*ast.BasicLit)

			if named && literal && text.Kind == gotoken.STRING {
				value, err := strconv.Unquote(text.Value)
				require.NoError(t, err)

				values[kind.Name] = append(values[kind.Name], value)
			}

			return true
		})
	}

	return values
}

// The description's enums equal the code's: a value that grows in Go alone would
// be refused by generated clients.
func TestEnums_AreThoseOfTheCode(t *testing.T) {
	t.Parallel()

	data, err := os.ReadFile("openapi.yaml")
	require.NoError(t, err)
	doc, err := openapi3.NewLoader().LoadFromData(data)
	require.NoError(t, err)

	domain, advice := constants(t, ".."), constants(t, "../internal/control/advice")
	sets := map[string][]string{
		"FailureKind": domain["FailureKind"], "Purpose": domain["Purpose"], "Goal": domain["Goal"], "FootprintSource": domain["FootprintSource"],
		"MetricStatus": domain["MetricStatus"], "Dimension": domain["Dimension"], "SharingMode": domain["SharingMode"],
		"SweepState": domain["SweepState"], "TrialState": domain["TrialState"], "AttemptState": domain["AttemptState"],
		"DiagnosisLabel": advice["Label"],
		"HostState":      slices.DeleteFunc(domain["HostState"], func(s string) bool { return s == "former" }),    // the placer's own
		"LeaseState":     slices.DeleteFunc(domain["LeaseState"], func(s string) bool { return s == "released" }), // which is not listed
	}

	for name, want := range sets {
		require.NotEmpty(t, want, name)
		require.Contains(t, doc.Components.Schemas, name)

		got := []string{}

		for _, value := range doc.Components.Schemas[name].Value.Enum {
			text, is := value.(string)
			require.True(t, is)

			got = append(got, text)
		}

		require.ElementsMatch(t, want, got, name)
	}
}
