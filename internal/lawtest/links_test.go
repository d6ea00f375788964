package lawtest_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	fence    = regexp.MustCompile("(?ms)^```.*?^```")
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	anchorID = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	markup   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the fragments by which GitHub links to the headings of a page:
// lower case, without punctuation, with a hyphen for each space.
func anchors(page string) map[string]bool {
	found := make(map[string]bool)
	page = fence.ReplaceAllString(page, "")

	for _, match := range heading.FindAllStringSubmatch(page, -1) {
		found[strings.ReplaceAll(markup.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-")] = true
	}

	for _, match := range anchorID.FindAllStringSubmatch(page, -1) {
		found[match[1]] = true
	}

	return found
}

// pages are the Markdown files of the tree by path.
func pages(t *testing.T) map[string]string {
	t.Helper()

	found := make(map[string]string)

	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." || entry.Name() == "node_modules"):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}

		text, err := os.ReadFile(path) //nolint:gosec // G122: our own tree
		found[path] = string(text)

		return err
	})
	require.NoError(t, err)
	require.Contains(t, found, filepath.Join("..", "..", "docs", "architecture.md"))

	return found
}

// TestLinks_Resolve follows every link from a page of the repository to a file
// in it, and to a heading where the link names one.
func TestLinks_Resolve(t *testing.T) {
	t.Parallel()

	all := pages(t)

	for path, page := range all {
		prose := codeSpan.ReplaceAllString(fence.ReplaceAllString(page, ""), "")

		for _, match := range link.FindAllStringSubmatch(prose, -1) {
			target, err := url.Parse(match[1])
			require.NoError(t, err, path)

			if target.Scheme != "" {
				continue // on another server
			}

			file := path
			if target.Path != "" {
				file = filepath.Join(filepath.Dir(path), filepath.FromSlash(target.Path))
			}

			_, err = os.Stat(file)
			require.NoError(t, err, "%s links to %q, which is not there", path, match[1])

			if target.Fragment != "" {
				require.True(t, anchors(all[file])[target.Fragment], "%s links to %q: no heading of that name", path, match[1])
			}
		}
	}
}
