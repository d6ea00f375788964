package filetime

import (
	"io/fs"
	"syscall"
	"time"
)

// Changed is when the kernel last noted a change of a file or of its metadata
// (ctime). No program can set it, as it can the time of its content.
func Changed(info fs.FileInfo) time.Time {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(stat.Ctim.Unix())
	}

	return info.ModTime()
}
