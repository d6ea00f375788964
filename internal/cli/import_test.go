package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const foreignSweep = "searchSpaceFile: space.json\ntrialCommand: python3 train.py\nmaxTrialNumber: 4\n"

func TestImport(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	config := filepath.Join(dir, "config.yml")
	require.NoError(t, os.WriteFile(config, []byte(foreignSweep), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "space.json"), []byte(`{"lr": {"_type": "uniform", "_value": [0, 1]}}`), 0o600))

	none := "" // no server is asked

	printed := succeed(t, none, "sweep", "import", config)
	require.Contains(t, printed.stdout, "# Written by berth sweep import from config.yml, of NNI.")
	require.Contains(t, printed.stdout, "{name: lr, type: float, min: 0, max: 1}")
	require.Contains(t, printed.stderr, "This is a sweep of NNI. Left out or changed:\n  tuner: no name becomes auto: a Gaussian process or TPE; early_stop stops bad trials early\n  nni.get_next_parameter: the script gets its values as flags")

	// The server's sample arrives on standard input, and is a sweep file.
	fed := execute(t.Context(), none, "sweep", "import", "-")
	require.Equal(t, ExitUsage, fed.code)
	require.Contains(t, fed.stderr, `importing "-": this is a sweep file of Berth already`)

	missing := execute(t.Context(), none, "sweep", "import", filepath.Join(dir, "none.yaml"))
	require.Equal(t, ExitUsage, missing.code)
	require.Contains(t, missing.stderr, "reading the file to import: open")
}
