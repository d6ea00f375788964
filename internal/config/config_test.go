package config_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/config"
)

// settings are some flags of a command.
type settings struct {
	url   string
	port  int
	hosts []string
	lease time.Duration
	dry   bool
	share float64
}

func setup() (*pflag.FlagSet, *settings) {
	flags, s := pflag.NewFlagSet("berth", pflag.ContinueOnError), &settings{}
	flags.StringVar(&s.url, "postgres-url", "default", "")
	flags.IntVar(&s.port, "port", 1, "")
	flags.StringSliceVar(&s.hosts, "allowed-hosts", nil, "")
	flags.DurationVar(&s.lease, "lease", time.Minute, "")
	flags.BoolVar(&s.dry, "dry-run", false, "")
	flags.Float64Var(&s.share, "share", 0.5, "")

	return flags, s
}

// env is an environment, and a configuration file when it is not empty.
func env(t *testing.T, file string, variables map[string]string) func(string) string {
	t.Helper()

	all := map[string]string{}
	maps.Copy(all, variables)

	if file != "" {
		path := filepath.Join(t.TempDir(), "berth.yaml")
		require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
		all[config.FileVariable] = path
	}

	return func(name string) string { return all[name] }
}

func TestVariable(t *testing.T) {
	t.Parallel()

	require.Equal(t, "BERTH_POSTGRES_URL", config.Variable("postgres-url"))
}

func TestApply_FlagOverEnvironmentOverFileOverDefault(t *testing.T) {
	t.Parallel()

	const file = "postgres-url: from-file\nport: 2\nlease: 2m\nlisten: [1]\n"

	variables := map[string]string{"BERTH_POSTGRES_URL": "from-env", "BERTH_PORT": "3", "BERTH_DRY_RUN": ""}

	flags, s := setup()
	require.NoError(t, flags.Parse([]string{"--postgres-url", "from-flag"}))
	require.NoError(t, config.Apply(flags, env(t, file, variables), "listen"), "listen is another command's")
	require.Equal(t, &settings{url: "from-flag", port: 3, lease: 2 * time.Minute, share: 0.5}, s)
}

func TestTyped(t *testing.T) {
	t.Parallel()

	flags, _ := setup()
	require.NoError(t, flags.Parse([]string{"--postgres-url", "from-flag"}))
	require.NoError(t, config.Apply(flags, env(t, "lease: 2m\n", map[string]string{"BERTH_PORT": "3"})))

	for name, typed := range map[string]bool{"postgres-url": true, "port": false, "lease": false, "share": false, "nothing": false} {
		require.Equal(t, typed, config.Typed(flags, name), name)
	}
}

func TestApply_ReadsTheFileAsItIsWritten(t *testing.T) {
	t.Parallel()

	flags, s := setup()
	require.NoError(t, config.Apply(flags, env(t, `
# comment
port: 8080
share: 1e-3
dry-run: true
postgres-url: "postgres://h/db?x=1,2"
allowed-hosts: [a.example, b.example]
lease:
`, nil)))
	require.Equal(t, &settings{
		url: "postgres://h/db?x=1,2", port: 8080, share: 0.001, dry: true, hosts: []string{"a.example", "b.example"}, lease: time.Minute,
	}, s)
}

func TestApply_ListsByCommas(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct{ file, variable string }{
		"commas":                       {variable: "a.example,b.example"},
		"commas and blanks":            {variable: " a.example, b.example "},
		"lines":                        {variable: "a.example\nb.example\n"},
		"lines and commas":             {variable: "a.example,\r\n  b.example,\n"},
		"a list":                       {file: "allowed-hosts: [a.example, b.example]"},
		"one text in the file":         {file: "allowed-hosts: a.example, b.example"},
		"one text of lines, in a file": {file: "allowed-hosts: |\n  a.example\n  b.example\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			flags, s := setup()
			require.NoError(t, config.Apply(flags, env(t, c.file, map[string]string{"BERTH_ALLOWED_HOSTS": c.variable})))
			require.Equal(t, []string{"a.example", "b.example"}, s.hosts)
		})
	}
}

func TestApply_FlagsThatAreGivenAgain(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		file, variable string
		want           []string
	}{
		"a list":                    {file: "dataset: [a=/data/a, \"b=/data/b,c\"]", want: []string{"a=/data/a", "b=/data/b,c"}},
		"a list of one":             {file: "dataset: [\"b=/data/b,c\"]", want: []string{"b=/data/b,c"}},
		"a list by lines":           {file: "dataset:\n- a=/data/a\n- b=/data/b\n", want: []string{"a=/data/a", "b=/data/b"}},
		"one":                       {file: "dataset: a=/data/a", want: []string{"a=/data/a"}},
		"a variable of one":         {variable: "a=/data/a", want: []string{"a=/data/a"}},
		"commas":                    {variable: "a=/data/a,b-2=/data/b, c=/c", want: []string{"a=/data/a", "b-2=/data/b", "c=/c"}},
		"lines":                     {variable: "a=/data/a\n  b=/data/b,c=/c\n\n", want: []string{"a=/data/a", "b=/data/b,c=/c"}},
		"one, with a line's end":    {variable: "a=/data/a\n", want: []string{"a=/data/a"}},
		"a variable, over the file": {file: "dataset: [x=/x]", variable: "a=/data/a", want: []string{"a=/data/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var got []string

			flags := pflag.NewFlagSet("berth", pflag.ContinueOnError)
			flags.StringArrayVar(&got, "dataset", []string{"default=/x"}, "")
			require.NoError(t, config.Apply(flags, env(t, c.file, map[string]string{"BERTH_DATASET": c.variable})))
			require.Equal(t, c.want, got)
			require.True(t, flags.Changed("dataset"))
		})
	}
}

func TestApply_Errors(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		getenv func(string) string
		says   string
	}{
		"variable":       {env(t, "", map[string]string{"BERTH_PORT": "many"}), "environment variable BERTH_PORT"},
		"key":            {env(t, "port: many", nil), "key port of "},
		"a map":          {env(t, "port: {a: 1}", nil), "key port of "},
		"a wrong key":    {env(t, "allowed-host: a", nil), "is no flag of any command; did you mean allowed-hosts?"},
		"another wrong":  {env(t, "frobnicate: a", nil), "key frobnicate of "},
		"other commands": {env(t, "listen: a", nil), "key listen of "},
		"no YAML":        {env(t, "port: [", nil), "reading configuration file"},
		"a list":         {env(t, "- port", nil), "reading configuration file"},
		"no file":        {env(t, "", map[string]string{config.FileVariable: "/nowhere/berth.yaml"}), "/nowhere/berth.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			flags, _ := setup()
			err := config.Apply(flags, c.getenv)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, berth.KindInvalid, berth.KindOf(err))
		})
	}
}
