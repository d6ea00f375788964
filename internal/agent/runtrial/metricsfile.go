package runtrial

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/filetime"
	"github.com/berthml/berth/internal/agent/metrics"
	"github.com/berthml/berth/internal/masking"
)

const (
	readAtOnce  = 1 << 20
	readPerLook = 8 << 20 // 32 MB/s, so that a sparse file does not keep us
	unreadBytes = 80      // of a line that a note shows
	tailBytes   = 64      // of what was read that each look compares
	// metricsFileBytes of the metrics file are read: a million points and more.
	metricsFileBytes = 256 << 20
	// shimFileBytes of the shim's file are: 50,000 epochs of ten metrics.
	shimFileBytes = 32 << 20
)

// recordFile is a file that a job appends records to, one a line: its metrics, or
// what the shim says. Nil = it is not read.
type recordFile struct {
	run  *run
	dir  string            // of the host, which the job writes to
	name string            // in there
	take func(line []byte) // one at a time
	anew func()            // the job began the file anew; nil = that changes nothing

	at   int64
	rest []byte       // unfinished last line
	left int64        // bytes that may still be read
	cut  bool         // there were more
	past maphash.Hash // of the bytes before at
	last []byte       // the newest of them, tailBytes at most
	seen os.FileInfo  // at the look before; nil = there was none

	unread unreadLines
}

// newMetricsFile reads a job's metrics into a series.
func newMetricsFile(r *run, series *metrics.Series, objective string) *recordFile {
	reader := metrics.NewReader("", objective)
	m := &recordFile{dir: r.dirs.out, run: r, name: metricsName, left: metricsFileBytes, unread: unreadLines{mask: r.mask}}

	m.take = func(line []byte) {
		points := reader.Read(berth.Stdout, string(line), time.Now().UTC())

		if reader.Restarted {
			reader.Restarted = false
			series.Forget(berth.MetricsFile, objective)
		}

		series.Add(berth.MetricsFile, points...)

		if len(points) == 0 {
			m.unread.add(line)
		}
	}
	m.anew = func() {
		reader.Restart()
		series.Reset(berth.MetricsFile)
	}

	return m
}

// unreadLines counts the lines of a metrics file that hold nothing that can be read.
type unreadLines struct {
	mask  *masking.Mask
	lines int
	first string
}

// add counts a line that holds no metric, but not what may well be there: a record without
// metrics, and the lines of one that goes over several.
func (u *unreadLines) add(line []byte) {
	text := metrics.Shown(string(line))
	if json.Valid([]byte(text)) || partOfRecord.MatchString(text) {
		return
	}

	if u.lines++; u.lines == 1 {
		text = u.mask.Quote(metrics.Shown(u.mask.Quote(string(line)))) // a value may have what is not shown, or be in pieces between
		u.first = strings.ToValidUTF8(text[:min(len(text), unreadBytes)], "")
	}
}

// partOfRecord has no letters, or is a field, or begins one, in a record of several lines.
var partOfRecord = regexp.MustCompile(`^(?:[^\pL\d]*|["'].*["']\s*:.*)$`)

// note says what could not be read; empty when all was.
func (u *unreadLines) note() string {
	if u.lines == 0 {
		return ""
	}

	if u.lines == 1 {
		return fmt.Sprintf("a line of its metrics file holds no metric that Berth can read: %q", u.first)
	}

	return fmt.Sprintf("%d lines of its metrics file hold no metric that Berth can read, such as %q", u.lines, u.first)
}

// readFiles reads what was appended to the files.
func (o *output) readFiles(most int64) {
	o.files.Lock()
	defer o.files.Unlock()

	o.file.read(most)
	o.events.look(most == math.MaxInt64)
	o.shimFile.read(most)
}

// read takes in the whole lines that were appended, of at most so many
// bytes. The file is the job's: it is opened below the attempt's directory only
// (a link cannot lead out of it), must be a regular file, and cannot block.
func (m *recordFile) read(most int64) {
	if m == nil || m.unchanged() {
		return
	}

	root, err := os.OpenRoot(m.dir)
	if err != nil {
		return
	}
	defer root.Close() //nolint:errcheck // only read

	file, err := root.OpenFile(m.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return // not there yet
	}
	defer file.Close() //nolint:errcheck // only read

	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}

	if m.begunAnew(file, info) {
		m.at, m.rest, m.last = 0, nil, nil
		m.past.Reset()

		if m.anew != nil {
			m.anew()
		}
	}

	m.seen = info

	buffer := make([]byte, min(readAtOnce, max(info.Size()-m.at, 0)+1)) // and a byte, to see its end

	for most > 0 {
		if m.left <= 0 {
			m.cut = m.cut || info.Size() > m.at

			return
		}

		n, err := file.ReadAt(buffer[:min(int64(len(buffer)), m.left)], m.at)
		m.at += int64(n)
		m.left -= int64(n)
		most -= int64(n)
		m.pass(buffer[:n])
		m.split(buffer[:n])

		if err != nil {
			if !errors.Is(err, io.EOF) {
				m.run.log.Warn("reading metrics", "attempt", m.run.who.Attempt.ID, "error", err)
			}

			return
		}
	}
}

// unchanged reports whether the file is as it was when all of it was read, or is not there
// yet. It opens nothing: most looks end here.
func (m *recordFile) unchanged() bool {
	info, err := os.Lstat(filepath.Join(m.dir, m.name))
	if err != nil {
		return true
	}

	return m.seen != nil && os.SameFile(info, m.seen) && info.Size() == m.at &&
		info.ModTime().Equal(m.seen.ModTime()) && filetime.Changed(info).Equal(filetime.Changed(m.seen))
}

// pass notes what was read, by which a file that was begun anew is told.
func (m *recordFile) pass(data []byte) {
	_, _ = m.past.Write(data) // returns no error

	m.last = append(m.last, data[max(len(data)-tailBytes, 0):]...)
	m.last = m.last[max(len(m.last)-tailBytes, 0):]
}

// begunAnew reports whether the job wrote the file again from its start, as one does
// that opens it with "w" each epoch, or puts another in its place: what was read of it is
// not there any more. A file of the same size, or another file, is compared in full, as
// far as readPerLook, so that one that holds the earlier records as well is read on.
func (m *recordFile) begunAnew(file *os.File, info os.FileInfo) bool {
	if info.Size() < m.at {
		return true
	}

	if m.at == 0 || m.seen == nil {
		return false
	}

	last := make([]byte, len(m.last))
	if _, err := file.ReadAt(last, m.at-int64(len(last))); err != nil || !bytes.Equal(last, m.last) {
		return err == nil || errors.Is(err, io.EOF)
	}

	replaced := !os.SameFile(info, m.seen)
	if same := info.Size() == m.at && !info.ModTime().Equal(m.seen.ModTime()); !replaced && !same || m.at > readPerLook {
		return false
	}

	var now maphash.Hash
	now.SetSeed(m.past.Seed())

	_, err := io.Copy(&now, io.NewSectionReader(file, 0, m.at))

	return err == nil && now.Sum64() != m.past.Sum64()
}

func (m *recordFile) split(data []byte) {
	data = append(m.rest, data...)

	for {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			break
		}

		m.take(data[:end])
		data = data[end+1:]
	}

	if len(data) > longestLine {
		data = nil
	}

	m.rest = bytes.Clone(data)
}

// end takes in the last line, which may lack its end.
func (m *recordFile) end() {
	if m == nil {
		return
	}

	if len(m.rest) > 0 {
		m.take(m.rest)
	}
}
