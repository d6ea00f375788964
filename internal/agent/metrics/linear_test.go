//go:build nightly

package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// A long line takes no more than its length.
func TestReader_IsLinear(t *testing.T) {
	t.Parallel()

	var values strings.Builder
	for i := range 1 << 17 {
		fmt.Fprintf(&values, ", a%d=1", i)
	}

	bar := "\rEpoch 0: 100%|██| 9/9 [00:01<00:00, 9.1it/s" + values.String() + "]"

	for name, line := range map[string]string{
		"pairs": strings.Repeat("a=1 ", 1<<16), "two drawings": bar + "\rValidation: 100%|██| 3/3 [00:00<00:00, 90.1it/s]" + strings.ReplaceAll(bar, "=1", "=2"), "vocabulary": "{" + strings.Repeat("'a': 1, ", 1<<15) + "'b': x}", "quotes": strings.Repeat(`":`, 1<<17),
		"a list": "[" + strings.Repeat(`{"a":1},`, 1<<15) + `{"a":1}]`, "of the best": "Best: [" + strings.Repeat(`{"acc": 0.5}, `, 1<<14) + `{"acc": 0.5}]`,
		"best messages": "[" + strings.Repeat(`{"message": "Best epoch: 1, acc: 0.5"}, `, 1<<13) + "]", "best and unread": "Best: {" + strings.Repeat(`"val_acc": "x1", `, 1<<14) + `"a": 1}`,
		"parentheses": strings.Repeat("(:", 1<<17), "words": strings.Repeat("val ", 1<<16) + "a=1", "parts": strings.Repeat("1/3 a=1\r", 1<<15),
	} {
		began := time.Now()

		NewReader("", "val_acc").readAll(berth.Stdout, line)
		require.Less(t, time.Since(began), time.Minute, "%s took minutes while it was quadratic", name)
	}
}
