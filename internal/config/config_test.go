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

	const file = "postgres-url: from-file\nport: 2\nlease: 2m\nunknown: [1]\n"

	variables := map[string]string{"BERTH_POSTGRES_URL": "from-env", "BERTH_PORT": "3", "BERTH_DRY_RUN": ""}

	flags, s := setup()
	require.NoError(t, flags.Parse([]string{"--postgres-url", "from-flag"}))
	require.NoError(t, config.Apply(flags, env(t, file, variables)))
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

	flags, s := setup()
	require.NoError(t, config.Apply(flags, env(t, "", map[string]string{"BERTH_ALLOWED_HOSTS": "a,b"})))
	require.Equal(t, []string{"a", "b"}, s.hosts)
}

func TestApply_Errors(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		getenv func(string) string
		says   string
	}{
		"variable": {env(t, "", map[string]string{"BERTH_PORT": "many"}), "environment variable BERTH_PORT"},
		"key":      {env(t, "port: many", nil), "key port of "},
		"a map":    {env(t, "port: {a: 1}", nil), "key port of "},
		"no YAML":  {env(t, "port: [", nil), "reading configuration file"},
		"a list":   {env(t, "- port", nil), "reading configuration file"},
		"no file":  {env(t, "", map[string]string{config.FileVariable: "/nowhere/berth.yaml"}), "/nowhere/berth.yaml"},
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
