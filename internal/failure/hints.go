package failure

import "regexp"

// hints are the next steps for errors that the container causes: parts missing in the
// image, and Berth's own fences. The first matching sign decides; $1 in a hint is its
// group.
var hints = []struct {
	sign *regexp.Regexp
	hint string
}{
	{
		regexp.MustCompile(readOnly),
		"; only /trial/out, /trial/checkpoint, /tmp and a working directory of at most 64 MiB can be written",
	},
	{
		regexp.MustCompile(`Temporary failure in name resolution|Network is unreachable|Name or service not known`),
		"; trials have no network unless the sweep says network: true: bake what is loaded into the image, or mount it as a data set, " +
			"and name it by KERAS_HOME, HF_HOME or TORCH_HOME",
	},
	{
		regexp.MustCompile(noSpace),
		"; /tmp holds as much as the trial may have of memory, and counts as memory; /dev/shm holds what resources.shm_size says",
	},
	{
		regexp.MustCompile(`can't start new thread|Resource temporarily unavailable|BlockingIOError: \[Errno 11\]|` +
			`pthread_create\(\) failed|Check failed: ret == 0 \(11`), // EAGAIN, in TensorFlow's and XLA's words
		"; a trial may have 512 processes and threads, or 16 per CPU of a machine with more than 32",
	},
	{
		regexp.MustCompile(`out of shared memory|killed by signal: Bus error`),
		"; raise resources.shm_size or leave it out, or use fewer data loader processes",
	},
	{
		// argparse, click, absl
		regexp.MustCompile(`error: unrecognized arguments: |No such option:? |Unknown command line flag `),
		"; correct `command` in the sweep file: `berth init SCRIPT -o new.yaml` lists the flags that the script has",
	},
	{
		// Python's own words for the script that it was to run; it ends with 2 then, as after a wrong flag
		regexp.MustCompile(`can't open file '([^']+)': \[Errno 2\]`),
		"; the image has no $1: correct `command`, or COPY the script in the Dockerfile and type `docker build` again",
	},
	{
		regexp.MustCompile(`\[Errno 13\] Permission denied|^PermissionError\b`),
		"; trials have no rights (user 65532): for files of the image write `RUN chmod -R a+rX DIR` into the Dockerfile and type `docker build` again; " +
			"files to write go to /trial/out",
	},
	{
		regexp.MustCompile(`No such file or directory`),
		"; a trial sees only what its image has and its `datasets`: COPY the file in the Dockerfile and type `docker build` again, or correct its path",
	},
	{
		regexp.MustCompile(`ModuleNotFoundError: No module named '([^'.]+)`),
		"; the image lacks $1: add its package to requirements.txt, or COPY it where it is a module of yours, and type `docker build` again",
	},
	{
		regexp.MustCompile(`^(?:SyntaxError|IndentationError|TabError)\b`),
		"; correct the script and type `docker build` again",
	},
}

// hint is what to do about the last words; empty = nothing is known.
func (e Evidence) hint() string {
	words := e.lastWords()
	for _, h := range hints {
		if at := h.sign.FindStringSubmatchIndex(words); at != nil {
			return string(h.sign.ExpandString(nil, h.hint, words, at))
		}
	}

	return ""
}
