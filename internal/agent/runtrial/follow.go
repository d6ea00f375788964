package runtrial

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/berthml/berth/internal/agent/filetime"
)

const (
	readAtOnce  = 1 << 20
	readPerLook = 8 << 20 // 32 MB/s, so that a sparse file does not keep us
	tailBytes   = 4 << 10 // of what was read that each look compares
)

// follower reads what a job appends to a file.
type follower struct {
	run  *run
	dir  string                         // of the host, which the job writes to
	name string                         // below it
	take func(data []byte) (skip int64) // what was appended; it says how much behind that to leave out
	anew func()                         // the job began the file anew

	at     int64
	left   *int64      // bytes that may still be read, also of others
	cut    bool        // there were more
	last   []byte      // the newest that were read, tailBytes at most
	lastAt int64       // where these end
	seen   os.FileInfo // at the look before; nil = there was none
}

// read takes in what was appended, of at most so many bytes, and returns how many of these
// are left. The file is the job's: it is opened below its directory only (a link cannot lead
// out of it), must be a regular file, and cannot block.
func (f *follower) read(most int64) int64 {
	if f.unchanged() {
		return most
	}

	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return most
	}
	defer root.Close() //nolint:errcheck // only read

	file, err := root.OpenFile(f.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return most // not there yet
	}
	defer file.Close() //nolint:errcheck // only read

	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return most
	}

	if f.begunAnew(file, info) {
		f.at, f.last, f.lastAt = 0, nil, 0
		f.anew()
	}

	f.seen = info

	buffer := make([]byte, min(readAtOnce, max(info.Size()-f.at, 0)+1)) // and a byte, to see its end

	for most > 0 {
		if *f.left <= 0 {
			f.cut = f.cut || info.Size() > f.at

			return most
		}

		n, err := file.ReadAt(buffer[:min(int64(len(buffer)), *f.left)], f.at)
		f.at += int64(n)
		*f.left -= int64(n)
		most -= int64(n)

		f.last = append(f.last, buffer[max(n-tailBytes, 0):n]...)
		f.last, f.lastAt = f.last[max(len(f.last)-tailBytes, 0):], f.at

		f.at += f.take(buffer[:n])

		if err != nil {
			if !errors.Is(err, io.EOF) {
				f.run.log.Warn("reading metrics", "attempt", f.run.who.Attempt.ID, "file", f.name, "error", err)
			}

			return most
		}
	}

	return most
}

// unchanged reports whether the file is as it was when all of it was read, or is not there
// yet. It opens nothing: most looks end here.
func (f *follower) unchanged() bool {
	info, err := os.Lstat(filepath.Join(f.dir, f.name))
	if err != nil {
		return true
	}

	return f.seen != nil && os.SameFile(info, f.seen) && info.Size() == f.seen.Size() && info.Size() <= f.at &&
		info.ModTime().Equal(f.seen.ModTime()) && filetime.Changed(info).Equal(filetime.Changed(f.seen))
}

// begunAnew reports whether the job wrote the file again from its start, as one does
// that opens it with "w" each epoch, or puts another in its place: the newest that was read
// is not there any more. One that holds the earlier records as well is read on.
func (f *follower) begunAnew(file *os.File, info os.FileInfo) bool {
	if f.seen != nil && info.Size() < f.seen.Size() {
		return true
	}

	last := make([]byte, len(f.last))
	_, err := file.ReadAt(last, f.lastAt-int64(len(last)))

	return err == nil && !bytes.Equal(last, f.last)
}

// recordFile is a file to which a job appends records, one a line: its metrics, or
// what the shim says. Nil = it is not read.
type recordFile struct {
	follower

	line func(line []byte) // takes one at a time
	rest []byte            // unfinished last line
}

// newRecordFile follows a file of so many bytes at the most.
func newRecordFile(r *run, dir, name string, bytes int64, line func(line []byte)) *recordFile {
	m := &recordFile{line: line}
	m.follower = follower{run: r, dir: dir, name: name, left: &bytes, take: m.split, anew: func() { m.rest = nil }}

	return m
}

func (m *recordFile) split(data []byte) int64 {
	data = append(m.rest, data...)

	for {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			break
		}

		m.line(data[:end])
		data = data[end+1:]
	}

	if len(data) > longestLine {
		data = nil
	}

	m.rest = bytes.Clone(data)

	return 0
}

// end takes in the last line, which may lack its end.
func (m *recordFile) end() {
	if m != nil && len(m.rest) > 0 {
		m.line(m.rest)
	}
}
