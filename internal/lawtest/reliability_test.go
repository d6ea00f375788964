package lawtest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// failures is how many ways to fail docs/reliability.md has a row for.
const failures = 125

var (
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	testName     = regexp.MustCompile("`([a-z0-9/]*)\\.(Test\\w+)`")
)

// tests are the test functions of the tree, by "folder.Name".
func tests(t *testing.T) map[string]bool {
	t.Helper()

	found := make(map[string]bool)

	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}

		text, err := os.ReadFile(path) //nolint:gosec // G122: our own tree
		if err != nil {
			return err
		}

		folder := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../")

		if folder == "../.." {
			folder = "berth"
		}

		for _, match := range testFunction.FindAllStringSubmatch(string(text), -1) {
			found[folder+"."+match[1]] = true
		}

		return nil
	})
	require.NoError(t, err)

	return found
}

// TestReliability_NamesTestsThatExist keeps docs/reliability.md true: it has a
// row for each failure, in order, and each named test exists.
func TestReliability_NamesTestsThatExist(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile("../../docs/reliability.md")
	require.NoError(t, err)

	known := tests(t)
	next, automated := 1, 0

	for line := range strings.Lines(string(text)) {
		named := testName.FindAllStringSubmatch(line, -1)
		for _, match := range named {
			require.True(t, known[match[1]+"."+match[2]], "docs/reliability.md names %s.%s, which is not there", match[1], match[2])
		}

		cells := strings.Split(line, "|")

		number, err := strconv.Atoi(strings.TrimSpace(strings.Join(cells[min(1, len(cells)):min(2, len(cells))], "")))
		if err != nil || len(cells) < 6 {
			continue
		}

		require.Equal(t, next, number, "a row for each failure, in order")

		next++

		if len(named) > 0 {
			automated++
		} else {
			require.Regexp(t, "[Nn]ot yet|[Nn]ot automated", line, "failure %d has no test: say why", number)
		}
	}

	require.Equal(t, failures+1, next, "a row is missing")
	require.Contains(t, string(text), strconv.Itoa(automated)+" of "+strconv.Itoa(failures), "say how many are automated")
}
