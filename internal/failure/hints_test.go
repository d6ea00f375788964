package failure_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// The hint for a missing part of the image says what to write, and to build the
// image again.
func TestClassify_SaysWhatToType(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		log  string
		want string
	}{
		"wrong flag, argparse": {
			"usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --lrr=1",
			"unrecognized arguments: --lrr=1; correct `command` in the sweep file: `berth init SCRIPT -o new.yaml` lists the flags that the script has",
		},
		"wrong flag, click": {
			"Usage: train.py [OPTIONS]\nTry 'train.py --help' for help.\n\nError: No such option: --lrr Did you mean --lr?",
			"Error: No such option: --lrr Did you mean --lr?; correct `command`",
		},
		"wrong flag, absl": {
			"FATAL Flags parsing error: Unknown command line flag 'lrr'. Did you mean: lr ?\nPass --helpshort or --help" + "full to see help on flags.",
			"Unknown command line flag 'lrr'. Did you mean: lr ?; correct `command`",
		},
		"no script": {
			"python3: can't open file '/app/tain.py': [Errno 2] No such file or directory",
			"; the image has no /app/tain.py: correct `command`, or COPY the script in the Dockerfile and type `docker build` again",
		},
		"no data": {
			"Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\nFileNotFoundError: [Errno 2] No such file or directory: 'data/x.csv'",
			"'data/x.csv'; a trial sees only what its image has and its `datasets`: COPY the file in the Dockerfile and type `docker build` again",
		},
		"not readable": {
			"python3: can't open file '/opt/train.py': [Errno 13] Permission denied",
			"; trials have no rights (user 65532): for files of the image write `RUN chmod -R a+rX DIR` into the Dockerfile and type `docker build` again",
		},
		"not writable": {
			"Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\nPermissionError: [Errno 13] Permission denied: '/data/cache'",
			"files to write go to /trial/out",
		},
		"no module": {
			"Traceback (most recent call last):\n  File \"train.py\", line 1, in <module>\nModuleNotFoundError: No module named 'torchvision.models'",
			"; the image lacks torchvision: add its package to requirements.txt, or COPY it where it is a module of yours, and type `docker build` again",
		},
		"syntax": {
			"  File \"/app/train.py\", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax",
			"SyntaxError: invalid syntax (/app/train.py, line 3); correct the script and type `docker build` again",
		},
		"syntax of a module": {
			"Traceback (most recent call last):\n  File \"/app/train.py\", line 1, in <module>\n    import nets\n  File \"/app/nets.py\", line 8\n    x = 1\nIndentationError: unexpected indent",
			"IndentationError: unexpected indent (/app/nets.py, line 8); correct the script",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			kind, message := failure.Classify(failure.Evidence{ExitCode: 2, LogTail: strings.Split(c.log, "\n")})
			require.Equal(t, berth.FailureUserError, kind)
			require.Contains(t, message, c.want)
		})
	}
}
