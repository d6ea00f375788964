package runtrial

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"syscall"
	"time"
)

const (
	tailEvery   = 250 * time.Millisecond // of the metrics file
	readAtOnce  = 1 << 20
	readPerLook = 8 << 20 // 32 MB/s, so that a sparse file does not keep us
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
	rest []byte // unfinished last line
	left int64  // bytes that may still be read
	cut  bool   // there were more
}

// newMetricsFile reads a job's metrics into a series.
func newMetricsFile(r *run, metrics *series) *recordFile {
	parser := newRecordParser()

	return &recordFile{
		dir: r.dirs.out,
		run: r, name: metricsName, left: metricsFileBytes,
		take: func(line []byte) { metrics.add(parser.parse(line, time.Now().UTC())...) },
		anew: func() { parser = newRecordParser() },
	}
}

// followFiles reads the files until the container has exited: the job's own first,
// which wins over the shim's. What an earlier Run stored of the shim's must be known
// before the job's own takes its place.
func (o *output) followFiles(ctx context.Context, exited <-chan struct{}) error {
	if o.file == nil && o.shimFile == nil {
		return nil
	}

	if o.run.container.Adopted {
		o.shimFile.read(math.MaxInt64)
	}

	ticker := time.NewTicker(tailEvery)
	defer ticker.Stop()

	for {
		o.file.read(readPerLook)
		o.shimFile.read(readPerLook)

		select {
		case <-ticker.C:
		case <-exited:
			o.file.read(math.MaxInt64)
			o.shimFile.read(math.MaxInt64)

			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// read takes in the whole lines that were appended, of at most so many
// bytes. The file is the job's: it is opened below the attempt's directory only
// (a link cannot lead out of it), must be a regular file, and cannot block.
func (m *recordFile) read(most int64) {
	if m == nil {
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

	if info.Size() < m.at { // the job began it anew
		m.at, m.rest = 0, nil
		if m.anew != nil {
			m.anew()
		}
	}

	buffer := make([]byte, readAtOnce)

	for most > 0 {
		if m.left <= 0 {
			m.cut = m.cut || info.Size() > m.at

			return
		}

		n, err := file.ReadAt(buffer[:min(readAtOnce, m.left)], m.at)
		m.at += int64(n)
		m.left -= int64(n)
		most -= int64(n)
		m.split(buffer[:n])

		if err != nil {
			if !errors.Is(err, io.EOF) {
				m.run.log.Warn("reading metrics", "attempt", m.run.who.Attempt.ID, "error", err)
			}

			return
		}
	}
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
	if m != nil && len(m.rest) > 0 {
		m.take(m.rest)
	}
}
