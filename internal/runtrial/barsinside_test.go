package runtrial

import (
	"fmt"
	"strings"
	"testing"
)

// tqdm draws a bar inside another one a line below that, and goes back up.
func TestBars_InsideAnother(t *testing.T) {
	t.Parallel()

	const up = "\x1b[A"

	inner := func(e int, losses ...string) (drawn string) {
		for i, loss := range losses {
			drawn += fmt.Sprintf("\n\rEpoch %d:  %d%%|██▌       | %d/4 [00:00<00:00, 15.52it/s, loss=%s]%s", e, 25*i, i, loss, up)
		}

		return fmt.Sprintf("\n\rEpoch %d:   0%%|          | 0/4 [00:00<?, ?it/s]%s", e, up) + drawn
	}
	outer := func(e int) string {
		return fmt.Sprintf("\rEpochs:  %d%%|█████     | %d/2 [00:00<00:00,  3.64it/s]", 50*e, e)
	}
	left := func(e int, loss string) string {
		bar := fmt.Sprintf("\rEpoch %d: 100%%|██████████| 4/4 [00:00<00:00, 14.66it/s, loss=%s]", e, loss)

		return "\n" + bar + up + bar + "\n"
	}
	gone := "\n" + strings.TrimSuffix(erasedBar, "\r") + "\r" + up
	first, second := inner(0, "1", "0.9", "0.8", "0.6"), inner(1, "0.3", "0.5", "0.55", "0.5")

	for name, text := range map[string]string{
		"left":  outer(0) + first + left(0, "0.6") + outer(1) + second + left(1, "0.5") + outer(2) + outer(2) + "\n",
		"gone":  outer(0) + first + gone + outer(1) + second + gone + outer(2) + outer(2) + "\n",
		"ended": outer(0) + first + gone + outer(1) + second,
	} {
		requireRanked(t, map[string]rankedCase{
			name + ", best": {"loss", theBest, text, 0.5},
			name + ", mean": {"loss", theMean, text, 0.55},
		})
	}

	saved := strings.TrimSuffix(erasedBar, "\r") + "\n" + gone[1:] + "saved\n"
	again := strings.SplitAfter(inner(0, "0.1", "0.1", "0.2", "0.3"), up)[3:] // from 2/4 on
	text := outer(0) + inner(0, "0.1", "0.1", "0.2") + saved + outer(0) + strings.Join(again, "") + gone + outer(1) + "\n"
	requireRanked(t, map[string]rankedCase{"tqdm.write": {"loss", theBest, text, 0.3}})

	fold := func(losses ...string) string {
		return strings.ReplaceAll(strings.ReplaceAll(inner(0, losses...), "Epoch 0:", ""), "loss=", "val_loss=") + gone
	}
	requireRanked(t, map[string]rankedCase{
		"epochs of folds": {"val_loss", theBest, "\rfold:   0%|          | 0/2 [00:00<?, ?it/s]" + fold("1", "0.9", "0.4", "0.6") + "\rfold:  50%|█████     | 1/2 [00:01<00:01,  3.64it/s]\n", 0.4},
	})
}
