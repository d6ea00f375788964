package failure

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A message proposes no setting and no other metric.
func TestSimilar_ProposesNoOtherMetric(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		objective string
		reported  []string
	}{
		{"loss", []string{"loss scale", "lr"}},
		{"acc", []string{"grad acc steps", "lr"}},
		{"mape", []string{"map", "lr"}},
		{"val_accuracy", []string{"accuracy", "test_accuracy", "train_accuracy"}},
		{"f1_score", []string{"Score"}},
	} {
		require.NotContains(t, similar(c.objective, c.reported), "did you mean", "%q for %q", c.reported, c.objective)
	}

	for objective, name := range map[string]string{
		"val_los": "val_loss", "score": "scores", "acc": "best acc", "train_acc": "training_accuracy", "val_accuracy": "valid_acc",
		"val_loss": "eval_loss", "loss": "KL loss", "val_axcuracy": "val_accuracy",
	} {
		require.Contains(t, similar(objective, []string{name, "lr"}), "did you mean `metric: "+name+"`?")
	}
}
