package lawtest_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/berthml/berth"

// rows is the table of docs/architecture.md, lowest first: a package imports from rows below
// its own and never from its own. A name that ends with a slash stands for all below it that
// no row names.
var rows = [][]string{
	{""},
	{
		"internal/sweepfile/expr", "internal/sweepfile/argv", "internal/sweepfile/spec/document", "internal/agent/gpu", "internal/agent/simgpu/wire", "internal/agent/tfevents",
		"internal/agent/filetime", "internal/control/health", "internal/control/timeline", "internal/store/postgres/dbsqlc", "internal/export", "internal/search/pareto", "internal/web", "migrations", "api/openapi", "api/client", "frontend",
	},
	{"internal/search", "internal/search/stopping", "internal/search/insight", "internal/search/functions"},
	{"internal/search/simulate"},
	{"internal/sweepfile/", "internal/scheduler/", "internal/control/advice", "internal/control/report", "internal/failure", "internal/masking"},
	{"internal/agent/metrics", "internal/agent/sampling", "internal/control/preview"},
	{"activities", "internal/agent/", "internal/store/", "internal/scheduler/placer", "internal/control/retention", "internal/devstack", "internal/config"},
	{"workflows"},
	{"internal/control/temporal", "internal/agent/gpushare", "internal/agent/datadir"},
	{"worker", "api", "internal/cli", "internal/control/backends"},
	{"internal/control/doctor"},
	{"cmd/"},
}

// support is for tests and benches: it may know everything, and nothing else knows it.
var support = []string{"internal/testkit", "internal/e2e", "internal/lawtest", "bench"}

// only narrows the rows, by prefix of the importer.
var only = map[string][]string{
	"workflows":                 {"activities", ""},                                           // method references and inputs
	"internal/control/temporal": {"activities", "workflows", "internal/control/health", ""},   // it is given its ledger
	"worker":                    {"activities", "workflows", "internal/control/temporal", ""}, // it registers, and is given the rest
	"internal/cli": {
		"api/client", "internal/sweepfile/imports", "internal/sweepfile/script", "internal/sweepfile/spec", "internal/sweepfile/spec/document", "internal/search/functions", "internal/search/simulate", "", // a client of the API like any other
	},
}

// homes names the one package that may import a third-party library, beside
// tests.
var homes = map[string][]string{
	"github.com/docker/docker":             {"internal/agent/docker"},
	"github.com/NVIDIA/go-nvml":            {"internal/agent/nvml"},
	"C":                                    {"internal/agent/nvml"},
	"github.com/jackc/pgx":                 {"internal/store/postgres", "internal/store/postgres/dbsqlc"},
	"github.com/gin-gonic/gin":             {"api", "api/openapi"},
	"github.com/getkin/kin-openapi":        {"api", "api/openapi"},
	"github.com/expr-lang/expr":            {"internal/sweepfile/expr"},
	"gocloud.dev":                          {"internal/store/artifacts"},
	"filippo.io/age":                       {"internal/agent/secrets"},
	"github.com/parquet-go/parquet-go":     {"internal/export"},
	"google.golang.org/protobuf":           {"internal/agent/tfevents"},
	"github.com/spf13/cobra":               {"internal/cli", "cmd/"},
	"go.temporal.io/sdk/client":            {"internal/control/temporal", "worker", "internal/control/backends", "internal/devstack"},
	"go.temporal.io/sdk/worker":            {"workflows", "worker"},
	"go.temporal.io/sdk/workflow":          {"workflows", "worker"},
	"go.temporal.io/sdk":                   {"activities", "workflows", "internal/control/temporal", "worker", "internal/control/backends", "internal/devstack"},
	"github.com/stretchr/testify":          {},
	"go.uber.org/goleak":                   {},
	"pgregory.net/rapid":                   {},
	"github.com/oapi-codegen/runtime":      {"api/client", "api/openapi"},
	"go.temporal.io/sdk/contrib/envconfig": {"internal/control/backends"},
}

// impure are packages that a pure package must not import. The linter covers
// the clock and the global random source: time.Duration and a seeded source are
// fine.
var impure = []string{"os", "net", "database/sql", "log", "crypto/rand", "sync", "runtime", "syscall", "io/fs", "context"}

// imports returns the imports of the module's packages, without their tests.
func imports(t *testing.T) map[string][]string {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	require.NoError(t, err)

	found := make(map[string][]string)

	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		found[ours(fields[0])] = fields[1:]
	}

	require.Contains(t, found, "internal/lawtest")

	return found
}

// ours is a package's path in the module.
func ours(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

// row is where a package stands; -1 = nowhere.
func row(path string) int {
	if at := slices.IndexFunc(rows, func(names []string) bool { return slices.Contains(names, path) }); at >= 0 {
		return at
	}

	return slices.IndexFunc(rows, func(names []string) bool { return in(names, path) })
}

// in reports whether a path is one of the names; a name that ends with a slash
// stands for all below it.
func in(names []string, path string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return path == name || strings.HasSuffix(name, "/") && strings.HasPrefix(path, name)
	})
}

// forTests reports whether a package, or one below it, is test support.
func forTests(path string) bool {
	return slices.ContainsFunc(support, func(name string) bool { return path == name || strings.HasPrefix(path, name+"/") })
}

func TestLaw_ImportsPointDown(t *testing.T) {
	t.Parallel()

	for path, list := range imports(t) {
		if forTests(path) {
			continue
		}

		require.GreaterOrEqual(t, row(path), 0, "%s has no row: give it one in docs/architecture.md and here", path)

		for _, imported := range list {
			if imported != module && !strings.HasPrefix(imported, module+"/") {
				continue
			}

			below := ours(imported)
			require.False(t, forTests(below), "%s imports %s, which is for tests", path, below)
			require.Less(t, row(below), row(path), "%s imports %s, which is not below it", path, below)

			if allowed, narrow := only[path]; narrow {
				require.True(t, in(allowed, below), "%s imports %s; it may know %v", path, below, allowed)
			}
		}
	}
}

func TestLaw_OneHomeForEachLibrary(t *testing.T) {
	t.Parallel()

	for path, list := range imports(t) {
		if forTests(path) {
			continue
		}

		for _, imported := range list {
			for library, home := range homes {
				if imported == library || strings.HasPrefix(imported, library+"/") {
					require.True(t, in(home, path), "%s imports %s, whose home is %v", path, imported, home)
				}
			}
		}
	}
}

func TestLaw_TheRootKnowsTheStandardLibraryOnly(t *testing.T) {
	t.Parallel()

	for _, imported := range imports(t)[""] {
		first, _, _ := strings.Cut(imported, "/")
		require.NotContains(t, first, ".", "the root package imports %s", imported)
	}
}

func TestLaw_PurePackagesTouchNothing(t *testing.T) {
	t.Parallel()

	for path, list := range imports(t) {
		if at := row(path); (at < 2 || at > 4) && !slices.Contains([]string{"", "internal/sweepfile/expr", "internal/sweepfile/spec/document"}, path) || forTests(path) {
			continue
		}

		for _, imported := range list {
			for _, bad := range impure {
				touches := imported == bad || strings.HasPrefix(imported, bad+"/") && imported != "net/url" // parses texts
				touches = touches && (row(path) != 4 || imported != "sync")                                 // metrics and sampling have locks
				require.False(t, touches, "%s imports %s and is pure", path, imported)
			}
		}
	}
}

// A package whose tests use rapid has their seed fixed.
func TestLaw_TestsDrawByAFixedSeed(t *testing.T) {
	t.Parallel()

	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}}{{range .TestImports}} {{.}}{{end}}{{range .XTestImports}} {{.}}{{end}}`, "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	require.NoError(t, err)

	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if path := ours(fields[0]); path != "internal/testkit/testseed" && slices.Contains(fields, "pgregory.net/rapid") {
			require.Contains(t, fields, module+"/internal/testkit/testseed", "the tests of %s use rapid: import internal/testkit/testseed there", path)
		}
	}
}
