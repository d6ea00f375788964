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

	const docker = "type `docker build` again"

	for log, want := range map[string]string{
		"usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --lrr=1":                                    "unrecognized arguments: --lrr=1; correct `command` in the sweep file: `berth init SCRIPT -o new.yaml` lists the flags",
		"Usage: train.py [OPTIONS]\n\nError: No such option: --lrr Did you mean --lr?":                                        "Error: No such option: --lrr Did you mean --lr?; correct `command`",
		"FATAL Flags parsing error: Unknown command line flag 'lrr'. Did you mean: lr ?\nPass --helpshort or --help" + "full": "Unknown command line flag 'lrr'. Did you mean: lr ?; correct `command`",
		"python3: can't open file '/app/tain.py': [Errno 2] No such file or directory":                                        "; the image has no /app/tain.py: correct `command`, or COPY the script in the Dockerfile and " + docker,
		"python3: can't open file '/opt/train.py': [Errno 13] Permission denied":                                              "(user 65532): for files of the image write `RUN chmod -R a+rX DIR` into the Dockerfile and " + docker,
		"  File \"/app/train.py\", line 3\n    def f(:\n          ^\nSyntaxError: invalid syntax":                             "SyntaxError: invalid syntax (/app/train.py, line 3); correct the script and " + docker,
		strings.Join(traceback("FileNotFoundError: [Errno 2] No such file or directory: 'data/x.csv'"), "\n"):                 "'data/x.csv'; a trial sees only what its image has and its `datasets`: COPY the file in the Dockerfile and " + docker,
		strings.Join(traceback("PermissionError: [Errno 13] Permission denied: '/data/cache'"), "\n"):                         "files to write go to /trial/out",
		strings.Join(traceback("ModuleNotFoundError: No module named 'torchvision.models'"), "\n"):                            "; the image lacks torchvision: add its package to requirements.txt, or COPY it where it is a module of yours, and " + docker,
		strings.Join(traceback("  File \"/app/nets.py\", line 8", "IndentationError: unexpected indent"), "\n"):               "IndentationError: unexpected indent (/app/nets.py, line 8); correct the script",
	} {
		kind, message := failure.Classify(failure.Evidence{ExitCode: 2, LogTail: strings.Split(log, "\n")})
		require.Equal(t, berth.FailureUserError, kind)
		require.Contains(t, message, want)
	}
}
