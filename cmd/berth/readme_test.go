package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/sweepfile/spec"
)

// What the README tells a person to do works in its order: `make dev` builds
// the image that the sweep below it names.
func TestReadme_ItsSweepRunsAfterMakeDev(t *testing.T) {
	t.Parallel()

	read := func(elem ...string) string {
		data, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, elem...)...))
		require.NoError(t, err)

		return string(data)
	}

	readme := read("README.md")
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(readme)
	require.NotNil(t, block)

	s, err := spec.Decode([]byte(block[1]), "application/yaml")
	require.NoError(t, err)

	example, found := strings.CutPrefix(s.Image, "berth-examples/")
	require.True(t, found)

	example, _, _ = strings.Cut(example, ":")
	require.Regexp(t, `for example in [a-z ]*\b`+example+`\b`, read("scripts", "example-images"), "the script builds it")

	recipe := regexp.MustCompile(`(?m)^dev:.*\n(?:\t.*\n)+`).FindString(read("Makefile"))
	images, dev := strings.Index(recipe, "scripts/example-images"), strings.Index(recipe, "berth dev")
	require.Positive(t, images)
	require.Greater(t, dev, images, "the images are there before Berth takes sweeps")

	_, steps, found := strings.Cut(readme, block[0])
	require.True(t, found)

	_, afterDev, found := strings.Cut(steps, "make dev")
	require.True(t, found, "the reader starts Berth after reading the sweep file")
	require.Contains(t, afterDev, "sweep submit", "and submits it to what runs")
}
