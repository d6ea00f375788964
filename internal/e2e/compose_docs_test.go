//go:build integration && compose

package e2e

import (
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shellBlocks are the blocks of commands of a section of production.md that
// speak of Docker, in their order: the tests run them as they stand.
func shellBlocks(t testing.TB, section string, want int) []string {
	t.Helper()

	page := readFile(t, filepath.Join(repository, "docs", "production.md"))

	_, text, found := strings.Cut(page, "\n## "+section+"\n")
	require.True(t, found, "production.md has no section %q", section)
	text, _, _ = strings.Cut(text, "\n## ")

	var blocks []string

	for _, match := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		if strings.Contains(match[1], "docker ") {
			blocks = append(blocks, match[1])
		}
	}

	require.Len(t, blocks, want, "section %q", section)

	return blocks
}

func readAll(r io.Reader) string {
	data, err := io.ReadAll(r)
	if err != nil {
		return err.Error()
	}

	return string(data)
}
