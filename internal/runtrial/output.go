package runtrial

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/berthml/berth"
)

const (
	tailEvery   = 250 * time.Millisecond // of the metrics file
	pieceBytes  = 64 << 10               // of log, at most, in one row
	tailLines   = 200                    // kept for the classifier (reference/jobs.md section 3)
	lineBytes   = 4 << 10                // of one line kept for the classifier
	readAtOnce  = 1 << 20
	longestLine = 1 << 20 // of the metrics file; a longer one is skipped
)

// output is what a container says: its log and its metrics. Everything is read
// from the start, also by a run that adopts the container, so that the metrics
// are whole; what is stored already is stored once.
type output struct {
	run     *run
	metrics *series
	parser  *lineParser // nil unless metrics come from stdout

	mu       sync.Mutex
	offset   int64 // of the next byte of the log
	piece    berth.LogPiece
	pieces   []berth.LogPiece
	cut      bool // the log limit was reached
	lines    []string
	fileTail []byte // unfinished last line of the metrics file
	fileAt   int64
}

func newOutput(r *run) *output {
	o := &output{run: r, metrics: newSeries()}
	if r.who.Spec.Metrics.Source == berth.MetricsStdout {
		o.parser = newLineParser(r.who.Spec.Metrics.Pattern)
	}

	return o
}

// follow reads the container's log to its end.
func (o *output) follow(ctx context.Context, exited <-chan struct{}) error {
	err := o.run.containers.Logs(ctx, o.run.container.ID, berth.LogPosition{}, true, func(c berth.LogChunk) error {
		o.take(c)

		return nil
	})

	select {
	case <-exited:
	default:
		if ctx.Err() != nil {
			return nil
		}
	}

	if err != nil && ctx.Err() == nil {
		o.run.log.Warn("reading log", "attempt", o.run.who.Attempt.ID, "error", err)
	}

	return nil
}

// take adds a chunk to the log, to the classifier's tail and to the metrics.
func (o *output) take(c berth.LogChunk) {
	text := strings.ToValidUTF8(string(c.Data), "\uFFFD")

	if o.parser != nil && c.Stream == berth.Stdout {
		o.metrics.add(o.parser.parse(text, c.At)...)
	}

	o.mu.Lock()
	defer o.mu.Unlock()

	if line := strings.TrimRight(text, "\r\n"); line != "" {
		o.lines = append(o.lines, line[:min(len(line), lineBytes)])
		o.lines = o.lines[max(len(o.lines)-tailLines, 0):]
	}

	o.store(c)
}

// store queues the part of a chunk that is not in the database yet.
func (o *output) store(c berth.LogChunk) {
	from, to := o.offset, o.offset+int64(len(c.Data))
	o.offset = to

	if o.cut || to <= o.run.who.LogOffset {
		return
	}

	data := c.Data[max(o.run.who.LogOffset-from, 0):]

	if from >= o.run.config.LogLimit {
		o.cut = true
		o.push()
		o.pieces = append(o.pieces, berth.LogPiece{
			Offset: from, Stream: "berth", At: c.At, Data: []byte("\n[berth: the log limit is reached; the rest is not kept]\n"),
		})

		return
	}

	if o.piece.Stream != c.Stream || len(o.piece.Data)+len(data) > pieceBytes {
		o.push()
		o.piece = berth.LogPiece{Offset: to - int64(len(data)), Stream: c.Stream}
	}

	o.piece.At = c.At
	o.piece.Data = append(o.piece.Data, data...)
}

// push ends the piece that is being filled.
func (o *output) push() {
	if len(o.piece.Data) > 0 {
		o.pieces = append(o.pieces, o.piece)
	}

	o.piece = berth.LogPiece{}
}

// tail follows the metrics file, if metrics come from there.
func (o *output) tail(ctx context.Context, exited <-chan struct{}) error {
	if o.parser != nil {
		return nil
	}

	ticker := time.NewTicker(tailEvery)
	defer ticker.Stop()

	for {
		o.readFile()

		select {
		case <-ticker.C:
		case <-exited:
			o.readFile()

			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// readFile takes in the whole lines that were appended. The file is the job's:
// it is opened below the attempt's directory only, must be a regular file, and
// cannot block.
func (o *output) readFile() {
	root, err := os.OpenRoot(o.run.dirs.out)
	if err != nil {
		return
	}
	defer root.Close() //nolint:errcheck // only read

	file, err := root.OpenFile(metricsName, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return // not there yet
	}
	defer file.Close() //nolint:errcheck // only read

	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() <= o.fileAt {
		return
	}

	buffer := make([]byte, readAtOnce)

	for {
		n, err := file.ReadAt(buffer, o.fileAt)
		o.fileAt += int64(n)
		o.takeLines(buffer[:n])

		if err != nil {
			if !errors.Is(err, io.EOF) {
				o.run.log.Warn("reading metrics", "attempt", o.run.who.Attempt.ID, "error", err)
			}

			return
		}
	}
}

func (o *output) takeLines(data []byte) {
	data = append(o.fileTail, data...)

	for {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			break
		}

		o.metrics.add(parseRecord(data[:end], time.Now().UTC())...)
		data = data[end+1:]
	}

	if len(data) > longestLine {
		data = nil
	}

	o.fileTail = bytes.Clone(data)
}

// flush writes what has gathered, every half second. A database that is away
// does not end the attempt: the rest is written at the end.
func (o *output) flush(ctx context.Context, exited <-chan struct{}) error {
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()

	for {
		select {
		case <-ticker.C:
			if err := o.write(ctx); err != nil && ctx.Err() == nil {
				o.run.log.Warn("storing metrics and log; trying again", "attempt", o.run.who.Attempt.ID, "error", err)
			}
		case <-exited:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// finish writes everything that is left.
func (o *output) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()

	if len(o.fileTail) > 0 { // the job's last line may lack its end
		o.metrics.add(parseRecord(o.fileTail, time.Now().UTC())...)
	}

	return o.write(ctx)
}

func (o *output) write(ctx context.Context) error {
	attempt := o.run.who.Attempt.ID

	points := o.metrics.pending()
	if err := o.run.records.PutMetrics(ctx, attempt, points); err != nil {
		o.metrics.restore(points)

		return err
	}

	o.mu.Lock()
	o.push()
	pieces := o.pieces
	o.pieces = nil
	o.mu.Unlock()

	for i, piece := range pieces {
		if err := o.run.records.PutLog(ctx, attempt, piece); err != nil {
			o.mu.Lock()
			o.pieces = append(pieces[i:], o.pieces...)
			o.mu.Unlock()

			return err
		}
	}

	return nil
}

func (o *output) lastLines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.lines
}
