package lawtest_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/runtimetest"
)

// unmended holds a patch for each mend that `make test/oracle` takes out again.
const unmended = "../e2e/testdata/unmended"

// mends are the rows that have one.
var mends = []string{"88", "A1", "A11", "A13", "A2", "A23", "A27", "A3", "A4", "A6", "A9"}

var patched = regexp.MustCompile(`(?m)^\+\+\+ b/(.+)$`)

// TestUnmended_EveryPatchAppliesAndBuilds keeps the patches of make test/oracle
// usable: each says what it takes out and how that shows, applies to the code of
// today, and what comes of it compiles.
func TestUnmended_EveryPatchAppliesAndBuilds(t *testing.T) {
	t.Parallel()

	if _, err := exec.LookPath("git"); err != nil {
		runtimetest.Skip(t, "git is not installed, and applies the patches")
	}

	files, err := filepath.Glob(filepath.Join(unmended, "*.patch"))
	require.NoError(t, err)

	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".patch"))
	}

	require.Equal(t, mends, names)

	root, err := filepath.Abs("../..")
	require.NoError(t, err)

	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			file := filepath.Join(root, "internal/e2e/testdata/unmended", name+".patch")
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Regexp(t, `^`+name+`: [a-z].*\.\nShown by: .+\n`, string(text), "it says first what it takes out, then how chaos shows that")

			dir := t.TempDir()
			overlay := struct{ Replace map[string]string }{map[string]string{}}
			folders := map[string]bool{}

			for _, match := range patched.FindAllStringSubmatch(string(text), -1) {
				code, err := os.ReadFile(filepath.Join(root, match[1]))
				require.NoError(t, err)

				copied := filepath.Join(dir, match[1])
				require.NoError(t, os.MkdirAll(filepath.Dir(copied), 0o700))
				require.NoError(t, os.WriteFile(copied, code, 0o600))

				overlay.Replace[filepath.Join(root, match[1])] = copied
				folders["./"+filepath.Dir(match[1])] = true
			}

			require.NotEmpty(t, folders, "it patches nothing")
			command(t, dir, "git", "apply", file)

			for original, copied := range overlay.Replace {
				before, err := os.ReadFile(original)
				require.NoError(t, err)

				after, err := os.ReadFile(copied)
				require.NoError(t, err)
				require.NotEqual(t, string(before), string(after), original)
			}

			data, err := json.Marshal(overlay)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), data, 0o600))

			args := []string{"build", "-overlay", filepath.Join(dir, "overlay.json")}
			for folder := range folders {
				args = append(args, folder)
			}

			command(t, root, "go", args...)
		})
	}
}

// command runs a program that must succeed. Git takes the directory for no
// repository, also when a parent of it is one.
func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))

	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %s: %s", name, strings.Join(args, " "), out)
}
