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

	for name, c := range map[string]struct {
		log        string
		want, lack string
	}{
		"tqdm before traceback": {
			log: "\r 30%|███       | 3/10 [00:01<00:02,  2.51it/s]Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n    step()\n" +
				"ValueError: bad batch\nwandb: Find logs at: ./wandb/offline-run-1/logs",
			want: "ValueError: bad batch",
		},
		"TensorFlow with too few threads": {
			log: "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n" +
				"F0000 00:00:1795740943.389573       1 env.cc:84] Check failed: ret == 0 (11 vs. 0) Thread tf_data_private_threadpool creation via pthread_create() failed.\n" +
				"*** Check failure stack trace: ***\n    @     0x7fed03186564  absl::lts_20250814::log_internal::LogMessage::SendToLog()\n    @           0x520622  (unknown)",
			want: "(exit code 1): Check failed: ret == 0 (11 vs. 0) Thread tf_data_private_threadpool creation via pthread_create() failed.; a trial may have 512 processes",
			lack: "SendToLog",
		},
		"the first of two checks": {
			log: "2026-11-26 12:00:00.000001: F external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:1186] Check failed: first\n" +
				"2026-11-26 12:00:00.000002: F tensorflow/core/x.cc:11] Check failed: second\n    @ 0x1 f()",
			want: "(exit code 1): Check failed: first", lack: "second",
		},
		"Typer's box": {
			log:  "Usage: train.py [OPTIONS]\nTry 'train.py --help' for help.\n╭─ Error ───────────────────╮\n│ No such option: --lrr                    │\n╰───────────────────────────╯",
			want: "(exit code 1): No such option: --lrr; ", lack: "│",
		},
		"state dict": {
			log: "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n    net.load_state_dict(s)\n  File \"module.py\", line 1, in load_state_dict\n    raise RuntimeError\n" +
				"RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch for fc.weight: copying a param with shape torch.Size([32, 64]) from checkpoint, the shape in current model is torch.Size([64, 64]).",
			want: "size mismatch for fc.weight",
		},
		"keras call": {
			log: "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n    model.fit(x)\n  File \"error_handler.py\", line 1, in error_handler\n    raise e\n" +
				"ValueError: Exception encountered when calling Sequential.call().\n\n\x1b[1mInput 0 of layer \"dense\" is incompatible with the layer: expected axis -1 of input shape to have value 32, but received input with shape (16, 64)\x1b[0m\n\nArguments received by Sequential.call():\n  • inputs=tf.Tensor(shape=(16, 64), dtype=float32)",
			want: "expected axis -1",
		},
		"pydantic": {
			log: "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n    Config(lr=-1)\n" +
				"pydantic_core._pydantic_core.ValidationError: 1 validation error for Config\nlr\n  Input should be greater than 0 [type=greater_than, input_value=-1, input_type=int]",
			want: "Input should be greater than 0",
		},
		"exception group": {
			log:  "  + Exception Group Traceback (most recent call last):\n  |   File \"train.py\", line 3, in <module>\n  |     main()\n  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n    |   File \"train.py\", line 1, in main\n    |     x()\n    | ValueError: bad lr\n    +------------------------------------",
			want: "ValueError: bad lr",
		},
		"handled traceback, then the real error": {
			log: "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    import tensorrt\nModuleNotFoundError: No module named 'tensorrt'\n" +
				"WARNING:root:going on without TensorRT\nepoch 1 loss=0.5\nepoch 2 loss=0.4\nERROR: the loss diverged, giving up",
			want: "the loss diverged",
		},
		"rich": {
			log:  "╭─────────────────────────────── Traceback (most recent call last) ────────────────────────────────╮\n│ /app/train.py:9 in <module>                                                                      │\n│ ❱ 9 step()                                                                                       │\n╰──────────────────────────────────────────────────────────────────────────────────────────────────╯\nValueError: bad batch\nwandb: Find logs at: ./wandb/offline-run-1/logs",
			want: "ValueError: bad batch",
		},
		"spawned process": {
			log: "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n    mp.spawn(f)\ntorch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 0 terminated with the following error:\nTraceback (most recent call last):\n  File \"spawn.py\", line 1, in _wrap\n    fn(i)\n  File \"train.py\", line 3, in f\n    raise\nValueError: bad shape\n", want: "ValueError: bad shape",
		},
		"sys.exit text after handled": {
			log: "Traceback (most recent call last):\n  File \"a.py\", line 3, in g\n    x()\nKeyError: 'optional'\nusing the default\nconfig.yaml: key 'lr' must be positive", want: "must be positive",
		},
		"assertion without words": {
			log: "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    assert x.shape == y.shape\nAssertionError", want: "assert x.shape == y.shape",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, message := failure.Classify(failure.Evidence{ExitCode: 1, LogTail: strings.Split(c.log, "\n")})
			require.Contains(t, message, c.want)

			if c.lack != "" {
				require.NotContains(t, message, c.lack)
			}
		})
	}
}

// The exception comes with its causes, without the output around it.
func TestClassify_QuotesTheException(t *testing.T) {
	t.Parallel()

	const caused = "The above exception was the direct cause of the following exception:"

	graph := []string{
		"Traceback (most recent call last):", `  File "/app/train.py", line 9, in <module>`, "    model.fit(x, y)",
		"tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:", "",
		"Detected at node compile_loss/SparseSoftmaxCrossEntropyWithLogits defined at (most recent call last):", "<stack traces unavailable>",
		"Received a label value of 10 which is outside the valid range of [0, 10).  Label values: 10 3",
		"\t [[{{node compile_loss/SparseSoftmaxCrossEntropyWithLogits}}]] [Op:__inference_multi_step_on_iterator_1]",
	}

	for want, lines := range map[string][]string{
		"OSError: [Errno 30] Read-only file system: 'm.keras'; only /trial/out": { // a line of the other stream within
			"Traceback (most recent call last):", `  File "t.py", line 1, in f`, "val_accuracy: 0.7", "    save()", "OSError: [Errno 30] Read-only file system: 'm.keras'",
		},
		"(exit code 1): ValueError: bad": {"[rank0]: Traceback (most recent call last):", `[rank0]:   File "t.py", line 1`, "[rank0]: ValueError: bad"},
		"InvalidArgumentError: Graph execution error: Received a label value of 10 which is outside": graph,
		"RuntimeError: c (raised from KeyError: 'lr')":                                               slices.Concat(traceback("KeyError: 'lr'"), []string{caused}, traceback("ValueError: b"), []string{caused}, traceback("RuntimeError: c")),
		"(exit code 1): TypeError: last":                                                             slices.Concat(traceback("KeyError: 'lr'"), []string{caused}, traceback("ValueError: caught"), traceback("TypeError: last")),
		"(exit code 1): KeyError: 'x' (its last line: val_accuracy: 0.7)":                            append(traceback("KeyError: 'x'"), "val_accuracy: 0.7", "5/5 ━━━━ 0s 12ms/step"),
		"(exit code 1): Stopped: no room":                                                            traceback("Stopped: no room"),
		"cannot open data":                                                                           {"cannot open data", "100%|██████████| 5/5 [00:01<00:00]"},
		"5/5 ━━━━ 0s":                                                                                {"1/5 ━━ 1s\r5/5 ━━━━ 0s"},
		"it printed nothing":                                                                         nil,
	} {
		kind, message := failure.Classify(failure.Evidence{ExitCode: 1, LogTail: lines})
		require.Equal(t, berth.FailureUserError, kind)
		require.Contains(t, message, want)

		if strings.Contains(want, "last") {
			require.NotContains(t, message, "raised from")
		}
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
