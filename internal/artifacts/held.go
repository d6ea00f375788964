package artifacts

import (
	"errors"
	"os"
	"syscall"
)

// heldFiles is how many files of a checkpoint are held open: a quarter of this
// process's limit on open files, because it has other work.
func heldFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}

	return int(min(limit.Cur/4, 1<<20))
}

// holdOpen opens files before the first is sent, because sending may take longer than a job takes
// to replace or remove them: held files are sent unchanged. Files beyond most are opened at
// their turn, and count as changed if they were replaced. Errors: ErrChanged and
// fs.ErrNotExist.
func holdOpen(root *os.Root, sources []found, most int) (release func(), err error) {
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
