package document_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berthml/berth/internal/sweepfile/spec/document"
)

// BenchmarkYAMLMiB reads 1 MiB of the shapes that hurt other parsers.
func BenchmarkYAMLMiB(b *testing.B) {
	const mib = 1 << 20

	var keys strings.Builder
	for i := 0; keys.Len() < mib; i++ {
		fmt.Fprintf(&keys, "key%d: %d\n", i, i)
	}

	for name, text := range map[string]string{
		"flow":      "enqueue:\n" + strings.Repeat("- {lr: 0.001, batch: 32, width: 64, optimizer: adam}\n", mib/53),
		"block":     "enqueue:\n" + strings.Repeat("- lr: 0.001\n  batch: 32\n", mib/24),
		"keys":      keys.String(),
		"brackets":  strings.Repeat("[", mib),
		"dashes":    strings.Repeat("- ", mib/2),
		"plain":     "a: " + strings.Repeat("x\n  ", mib/4),
		"quoted":    "a: \"" + strings.Repeat("x \n", mib/3) + "\"",
		"literal":   "a: |\n" + strings.Repeat("  x\n", mib/4),
		"comments":  strings.Repeat("# x\n", mib/4),
		"blank":     strings.Repeat("\n", mib),
		"questions": strings.Repeat("a?", mib/2),
		"colons":    strings.Repeat("a:", mib/2),
		"hashes":    "a: x" + strings.Repeat(" #", mib/2),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = document.ParseYAML([]byte(text))
			}
		})
	}
}
