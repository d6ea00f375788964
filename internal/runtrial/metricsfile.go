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
)

// metricsFile is the file that a job appends its metrics to. One goroutine
// follows it; nil when metrics come from standard output.
type metricsFile struct {
	run     *run
	metrics *series
	parser  *recordParser

	at   int64
	rest []byte // unfinished last line
	left int64  // bytes that may still be read
	cut  bool   // there were more
}

// follow reads the file until the container has exited.
func (m *metricsFile) follow(ctx context.Context, exited <-chan struct{}) error {
	if m == nil {
		return nil
	}

	ticker := time.NewTicker(tailEvery)
	defer ticker.Stop()

	for {
		m.read(readPerLook)

		select {
		case <-ticker.C:
		case <-exited:
			m.read(math.MaxInt64)

			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// read takes in the whole lines that were appended, of at most so many
// bytes. The file is the job's: it is opened below the attempt's directory only
// (a link cannot lead out of it), must be a regular file, and cannot block.
func (m *metricsFile) read(most int64) {
	root, err := os.OpenRoot(m.run.dirs.out)
	if err != nil {
		return
	}
	defer root.Close() //nolint:errcheck // only read

	file, err := root.OpenFile(metricsName, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return // not there yet
	}
	defer file.Close() //nolint:errcheck // only read

	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}

	if info.Size() < m.at { // the job began it anew
		m.at, m.rest, m.parser = 0, nil, newRecordParser()
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
		m.take(buffer[:n])

		if err != nil {
			if !errors.Is(err, io.EOF) {
				m.run.log.Warn("reading metrics", "attempt", m.run.who.Attempt.ID, "error", err)
			}

			return
		}
	}
}

func (m *metricsFile) take(data []byte) {
	data = append(m.rest, data...)

	for {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			break
		}

		m.metrics.add(m.parser.parse(data[:end], time.Now().UTC())...)
		data = data[end+1:]
	}

	if len(data) > longestLine {
		data = nil
	}

	m.rest = bytes.Clone(data)
}

// end takes in the last line, which may lack its end.
func (m *metricsFile) end() {
	if len(m.rest) > 0 {
		m.metrics.add(m.parser.parse(m.rest, time.Now().UTC())...)
	}
}
