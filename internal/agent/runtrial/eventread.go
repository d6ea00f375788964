package runtrial

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/berthml/berth/internal/agent/tfevents"
)

const (
	// mostEntries of a job's directories are looked at for event files, mostDepth deep.
	mostEntries = 20_000
	mostDepth   = 16
	mostWrong   = 3 // files that are named in an attempt's message
)

// find adds the event files that are new. Links are not followed.
func (e *eventFiles) find() {
	left, had := mostEntries, len(e.files)

	for _, at := range e.roots {
		root, err := os.OpenRoot(at)
		if err != nil {
			continue // not there
		}

		e.walk(root, at, ".", mostDepth, &left)
		_ = root.Close() // only read
	}

	if left <= 0 {
		e.many = true
	}

	if len(e.files) > had {
		slices.SortStableFunc(e.files, older)
	}
}

func (e *eventFiles) walk(root *os.Root, at, dir string, depth int, left *int) {
	file, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer file.Close() //nolint:errcheck // only read

	for *left > 0 {
		entries, err := file.ReadDir(min(*left, 256))
		*left -= len(entries)

		for _, entry := range entries {
			switch name := path.Join(dir, entry.Name()); {
			case entry.IsDir() && depth > 0:
				e.walk(root, at, name, depth-1, left)
			case entry.Type().IsRegular() && tfevents.IsEventFile(entry.Name()):
				e.meet(root, at, name)
			}
		}

		if err != nil {
			return
		}
	}
}

// meet adds a file unless it is known.
func (e *eventFiles) meet(root *os.Root, at, name string) {
	key := at + "\x00" + name
	if e.known[key] {
		return
	}

	if len(e.files) >= mostEventFiles {
		e.many = true

		return
	}

	info, err := root.Lstat(name)
	if err != nil || !e.isJobs(at, name, info) {
		return
	}

	e.known[key] = true
	e.files = append(e.files, &eventFile{root: at, path: name, decoder: tfevents.NewDecoder()})
}

// read takes in the whole records that were appended to a file, of at most so
// many bytes, and returns how many of these are left.
func (e *eventFiles) read(f *eventFile, most int64, end bool) int64 {
	root, err := os.OpenRoot(f.root)
	if err != nil {
		return most
	}
	defer root.Close() //nolint:errcheck // only read

	if info, err := root.Lstat(f.path); err != nil || !info.Mode().IsRegular() || info.Size() == f.at || f.given && info.Size() > f.at {
		return most
	}

	file, err := root.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return most
	}
	defer file.Close() //nolint:errcheck // only read

	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return most
	}

	if info.Size() < f.at { // the job began it anew
		*f = eventFile{root: f.root, path: f.path, decoder: tfevents.NewDecoder()}
	}

	return e.records(f, file, info.Size(), most, end)
}

// records reads from where the last look ended.
func (e *eventFiles) records(f *eventFile, file *os.File, size, most int64, end bool) int64 {
	in := bufio.NewReaderSize(io.NewSectionReader(file, f.at, size-f.at), 64<<10)

	for most > 0 {
		header, err := in.Peek(tfevents.HeaderBytes)
		if err != nil { // it has not all been written
			return most
		}

		if e.left <= 0 {
			e.cut = true

			return most
		}

		n, ok := tfevents.DataBytes(header)
		if !ok { // nobody knows where the next one begins
			if f.given = e.doubted(f, end); f.given {
				e.say(f, "could be read up to byte %d only, where a record has a wrong checksum")
			}

			return most
		}

		const around = tfevents.HeaderBytes + tfevents.FooterBytes
		if n > math.MaxInt32 && n > uint64(size) || int64(n) > size-f.at-around { //nolint:gosec // G115: a size is not negative, and n no larger than one
			return most
		}

		whole := int64(n) + around //nolint:gosec // G115: no larger than the file

		if n > longestEvent {
			f.at += whole
			in = bufio.NewReaderSize(io.NewSectionReader(file, f.at, size-f.at), 64<<10)

			continue
		}

		record := make([]byte, whole)
		if _, err := io.ReadFull(in, record); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				e.run.log.Warn("reading event files", "attempt", e.run.who.Attempt.ID, "error", err)
			}

			return most
		}

		if !e.record(f, record, end) {
			return most
		}

		f.at, f.doubts = f.at+whole, 0
		e.left, most = e.left-whole, most-whole
	}

	return most
}

// record takes in a record; it reports whether to go on behind it.
func (e *eventFiles) record(f *eventFile, record []byte, end bool) bool {
	data, footer := record[tfevents.HeaderBytes:len(record)-tfevents.FooterBytes], record[len(record)-tfevents.FooterBytes:]

	if !tfevents.Valid(data, footer) {
		if !e.doubted(f, end) {
			return false
		}

		e.say(f, "has a record with a wrong checksum at byte %d, which was left out")

		return true
	}

	scalars, err := f.decoder.Scalars(data)
	if err != nil {
		e.say(f, "has a record at byte %d that is no event, which was left out")
	}

	e.take(f, scalars)

	return true
}

// doubted counts how often the record at hand was wrong, and reports whether it
// is given up.
func (*eventFiles) doubted(f *eventFile, end bool) bool {
	f.doubts++

	return f.doubts >= eventPatience || end
}

// say notes what of a file could not be read.
func (e *eventFiles) say(f *eventFile, what string) {
	switch {
	case len(e.wrong) < mostWrong:
		e.wrong = append(e.wrong, fmt.Sprintf("its event file %q "+what, e.run.mask.Quote(f.path), f.at))
	case len(e.wrong) == mostWrong:
		e.wrong = append(e.wrong, "so have others of its event files")
	}
}
