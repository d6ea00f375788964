package metrics_test

import (
	"testing"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/metrics"
)

// BenchmarkParse reads what a training loop prints 300 times a second. 33 µs a line are
// 1 % of a core.
func BenchmarkParse(b *testing.B) {
	for name, line := range map[string]string{
		"step":   "step 1250/100000 | loss: 0.4821 | lr: 0.0003 | grad_norm: 1.27 | tokens/s: 10421",
		"short":  "epoch 3 loss=0.4821",
		"logger": "2026-11-26 12:00:00,123 - train - INFO - step 1250: loss=0.4821 lr=0.0003",
		"keras":  "125/1875 ━━━━━━━━━━━━━━━━━━━━ 4s 2ms/step - accuracy: 0.9123 - loss: 0.2911",
		"text":   "Downloading the shards of the data set and checking that they are whole",
		"counts": "processed 1250 of 100000 samples in 12 workers",
	} {
		b.Run(name, func(b *testing.B) {
			reader := metrics.NewReader("", "val_acc")
			at := time.Now()

			for b.Loop() {
				_ = reader.Read(berth.Stdout, line, at)
			}
		})
	}
}
