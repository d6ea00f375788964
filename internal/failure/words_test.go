package failure_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// The last output of real programs, and the part of it that gives the reason.
func TestClassify_QuotesTheReason(t *testing.T) {
	t.Parallel()

	const (
		code   = "(exit code 1): "
		caused = "The above exception was the direct cause of the following exception:"
		wandb  = "wandb: Find logs at: ./wandb/offline-run-1/logs"
		inner  = `  File "/app/train.py", line 9, in f`
		head   = "Traceback (most recent call last):"
	)

	for want, lines := range map[string][]string{
		// Python's exception, with what is around it.
		code + "ValueError: bad batch":                            append([]string{"\r 30%|███       | 3/10 [00:01<00:02,  2.51it/s]" + head, inner, "    step()", "ValueError: bad batch"}, wandb),
		code + "ValueError: bad":                                  {"[rank0]: " + head, "[rank0]: " + inner, "[rank0]: ValueError: bad"},
		code + "| ValueError: bad lr":                             {"  + Exception Group " + head, "  | " + inner, "  | ExceptionGroup: errors (1 sub-exception)", "  +-+---- 1 ----", "    | " + head, "    | " + inner, "    | ValueError: bad lr", "    +----"},
		code + "ValueError: bad shape":                            {head, inner, "torch.multiprocessing.spawn.ProcessRaisedException: ", "", "-- Process 0 terminated with the following error:", head, inner, "ValueError: bad shape"},
		code + "ValueError: in a box":                             {"╭──── " + head + " ────╮", "│ /app/train.py:9 in <module>   │", "│ ❱ 9 step()      │", "╰───────╯", "ValueError: in a box", wandb},
		code + "ValueError: of a worker":                          append(traceback("ValueError: of a worker"), traceback("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ")...),
		code + "Stopped: no room":                                 traceback("Stopped: no room"),
		code + "TypeError: the last one":                          slices.Concat(traceback("KeyError: 'lr'"), []string{caused}, traceback("ValueError: caught"), traceback("TypeError: the last one")),
		code + "KeyError: 'x' (its last line: val_accuracy: 0.7)": append(traceback("KeyError: 'x'"), "val_accuracy: 0.7", "5/5 ━━━━ 0s 12ms/step"),
		code + "the config's lr must be positive":                 {"the config's lr must be positive"},
		code + "ERROR: the loss diverged":                         append(traceback("ModuleNotFoundError: No module named 'tensorrt'"), "going on", "ERROR: the loss diverged"),
		"RuntimeError: c (raised from KeyError: 'lr')":            slices.Concat(traceback("KeyError: 'lr'"), []string{caused}, traceback("ValueError: b"), []string{caused}, traceback("RuntimeError: c")),
		"OSError: [Errno 30] Read-only file system: 'm.keras'; only /trial/out": { // a line of the other stream within
			head, inner, "val_accuracy: 0.7", "    save()", "OSError: [Errno 30] Read-only file system: 'm.keras'",
		},

		// The reason is in another line than the exception.
		"for Net: size mismatch for fc.weight": traceback("RuntimeError: Error(s) in loading state_dict for Net:", "\tsize mismatch for fc.weight: copying a param"),
		"expected axis -1":                     traceback("ValueError: Exception encountered when calling Sequential.call().", "", "\x1b[1mInput 0 of layer \"dense\": expected axis -1 to have value 32\x1b[0m", "", "Arguments received"),
		"Input should be greater than 0":       traceback("pydantic_core._pydantic_core.ValidationError: 1 validation error for Config", "lr", "  Input should be greater than 0 [type=greater_than]"),
		"assert x.shape == y.shape":            {head, inner, "    assert x.shape == y.shape", "AssertionError"},
		"Graph execution error: indices[0] = 9 is not in": append([]string{
			"W tensorflow/core/framework/local_rendezvous.cc:404] Local rendezvous is aborting with status: OUT_OF_RANGE: End of sequence", "\t [[{{node IteratorGetNext}}]]",
		}, traceback("tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:", "", "indices[0] = 9 is not in [0, 5)", "\t [[{{node embedding/Gather}}]]")...),
		"Graph execution error: Received a label value of 10": traceback("tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:", "",
			"Detected at node compile_loss/Softmax defined at (most recent call last):", "<stack traces unavailable>", "Received a label value of 10 which is outside the valid range",
			"\t [[{{node compile_loss/Softmax}}]] [Op:__inference_multi_step_on_iterator_1]"),

		// Other words than Python's.
		code + "Check failed: ret == 0 (11 vs. 0) Thread creation via pthread_create() failed.; a trial may have 512 processes": {
			"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
			"F0000 00:00:1795740943.389573       1 env.cc:84] Check failed: ret == 0 (11 vs. 0) Thread creation via pthread_create() failed.",
			"2026-11-26 12:00:00.000002: F tensorflow/core/x.cc:11] Check failed: second", "*** Check failure stack trace: ***", "    @     0x7fed03186564  absl::SendToLog()",
		},
		code + "No such option: --lrr; ": {"Usage: train.py [OPTIONS]", "╭─ Error ──────────╮", "│ No such option: --lrr     │", "╰───────────────╯"},
		"cannot open data":               {"cannot open data", "100%|██████████| 5/5 [00:01<00:00]"},
		"5/5 ━━━━ 0s":                    {"1/5 ━━ 1s\r5/5 ━━━━ 0s"},
		"it printed nothing":             nil,
	} {
		kind, message := failure.Classify(failure.Evidence{ExitCode: 1, LogTail: lines})
		require.Equal(t, berth.FailureUserError, kind)
		require.Contains(t, message, want)
		require.Equal(t, strings.Contains(want, "raised from"), strings.Contains(message, "raised from"))
		require.NotContains(t, message, "tensorrt", "the program got over that one")
	}
}

// A pipe or an except may hide that the program failed.
func TestClassify_NoResultQuotesAnException(t *testing.T) {
	t.Parallel()

	e := failure.Evidence{Objective: "acc", LogTail: traceback("FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'")}
	kind, message := failure.Classify(e)
	require.Equal(t, berth.FailureNoResult, kind)
	require.Contains(t, message, `; its log ends with FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'`)

	e.LogTail = []string{"trained", "ERROR: cannot save"}
	_, message = failure.Classify(e)
	require.NotContains(t, message, "its log ends", "only an exception is sure")
}

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
