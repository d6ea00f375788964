package runtrial

import (
	"path"
	"strings"
)

// splits are the directories by which programs tell what their metrics are of,
// with what then stands before the name. Keras writes train and validation.
var splits = map[string]string{"validation": "val_", "val": "val_", "valid": "val_", "eval": "eval_", "evaluation": "eval_", "test": "test_"}

// eventName names a metric by its tag and the directory of its event file. A
// directory that is no split does not matter: most are named by the time.
// SummaryWriter.add_scalars of PyTorch writes each of its values with one tag to
// a directory of its own, tag_key.
func eventName(dir, tag string) string {
	base := path.Base(dir)

	if prefix := splits[strings.ToLower(base)]; prefix != "" && !strings.HasPrefix(tag, prefix) {
		return prefix + tag
	}

	if key, is := strings.CutPrefix(base, strings.ReplaceAll(tag, "/", "_")+"_"); is && key != "" {
		return tag + "_" + key
	}

	return tag
}

// epochName is how Keras' callback names the metric of an epoch that its fit calls
// name: epoch_loss for loss, val_epoch_loss for val_loss.
func epochName(name string) string {
	for _, prefix := range splits {
		if rest, is := strings.CutPrefix(name, prefix); is {
			return prefix + "epoch_" + rest
		}
	}

	return "epoch_" + name
}
