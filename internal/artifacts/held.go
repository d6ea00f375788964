package artifacts

import (
	"errors"
	"os"
	"syscall"
)

// heldFiles is how many files of a checkpoint are held open: a quarter of what this
// process may open, which has other work.
func heldFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}

	return int(min(limit.Cur/4, 1<<20))
}

// hold opens files before the first is sent, which may take longer than a job takes to
// replace or remove them: those held are sent as they were. What is above most is opened at
// its turn, and counts as changed when it was replaced. Errors: ErrChanged and fs.ErrNotExist.
func hold(root *os.Root, sources []found, most int) (release func(), err error) {
	release = func() {
		for n := range sources {
			if sources[n].held != nil {
				_ = sources[n].held.Close() // only read
			}
		}
	}

	for n := range min(most, len(sources)) {
		file, err := sources[n].open(root)
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			break
		}

		if err != nil {
			release()

			return nil, err
		}

		sources[n].held = file
	}

	return release, nil
}
