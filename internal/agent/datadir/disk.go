package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"syscall"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/health"
)

// DefaultDiskHeadroom is room for the logs of 64 attempts at 30 MiB each, the
// most that Docker keeps of one, while a person frees space.
const DefaultDiskHeadroom = 2 << 30

// FullestDisk is the disk with the least free space among the directories'. An
// unreadable disk stops nothing.
func FullestDisk(log *slog.Logger, host berth.Host, dirs ...string) health.Disk {
	disk, err := Fullest(dirs...)
	if err != nil {
		log.Warn("reading the machine's disks", "error", err)

		return health.Disk{FreeBytes: host.DiskHeadroomBytes}
	}

	return disk
}

// LocalDisk is the file system of a directory; zero when it cannot be asked.
func LocalDisk(of, dir string) health.Disk {
	disk, err := Fullest(dir)
	if err != nil || disk.TotalBytes == 0 {
		return health.Disk{}
	}

	disk.Of = of

	return disk
}

// Fullest is the file system with the least free space of the directories', as
// a process without privileges may use it. It leaves out missing directories:
// Docker's own is elsewhere when the worker runs in a container.
func Fullest(dirs ...string) (health.Disk, error) {
	least := health.Disk{FreeBytes: math.MaxInt64}

	for _, dir := range dirs {
		var stat syscall.Statfs_t

		err := syscall.Statfs(dir, &stat)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}

		if err != nil {
			return health.Disk{}, fmt.Errorf("asking what is free where %s is: %w", dir, err)
		}

		block := int64(stat.Bsize) //nolint:unconvert // it differs by system

		// Blocks reserved for root are neither free nor in use, as df counts.
		free, used := int64(stat.Bavail)*block, int64(stat.Blocks-stat.Bfree)*block //nolint:gosec // G115: no disk has 2^63 bytes
		if free < least.FreeBytes {
			least = health.Disk{FreeBytes: free, TotalBytes: free + used}
		}
	}

	return least, nil
}

// FreeDisks returns the free space where trials keep their files, and where
// Docker keeps logs. It takes an invisible Docker directory to be on the same
// disk, as on most machines.
func FreeDisks(dataDir, dockerDir string) (files, logs int64, err error) {
	data, err := Fullest(dataDir)
	if err != nil {
		return 0, 0, err
	}

	docker, err := Fullest(dockerDir)
	if docker.TotalBytes == 0 {
		docker = data
	}

	return data.FreeBytes, docker.FreeBytes, err
}
