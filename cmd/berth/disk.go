package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"syscall"

	"github.com/berthml/berth"
)

// defaultDiskHeadroom is room for the logs of 64 attempts at 30 MiB each, the
// most that Docker keeps of one, while a person frees space.
const defaultDiskHeadroom = 2 << 30

// freeDisk is the least that is free where the directories are. A disk that
// cannot be asked stops nothing.
func freeDisk(log *slog.Logger, host berth.Host, dirs ...string) int64 {
	free, err := leastFree(dirs...)
	if err != nil {
		log.Warn("reading the machine's disks", "error", err)

		return host.DiskHeadroomBytes
	}

	return free
}

// leastFree is what a process without privileges may still write, in bytes, on
// the fullest of the file systems that hold the directories. One that is not
// there is left out: Docker's own is elsewhere when the worker runs in a
// container.
func leastFree(dirs ...string) (int64, error) {
	least := int64(math.MaxInt64)

	for _, dir := range dirs {
		var stat syscall.Statfs_t

		err := syscall.Statfs(dir, &stat)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}

		if err != nil {
			return 0, fmt.Errorf("asking what is free where %s is: %w", dir, err)
		}

		least = min(least, int64(stat.Bavail)*int64(stat.Bsize)) //nolint:gosec,unconvert // G115: no disk has 2^63 bytes; Bsize differs by system
	}

	return least, nil
}
