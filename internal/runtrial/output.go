package runtrial

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
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
	longestLine = 1 << 20 // with metrics; a longer one is skipped, or its beginning
)

// output is what a container says: its log and its metrics. Everything is read
// from the start, also by a run that adopts the container, so that the metrics
// are whole; what is stored already is stored once.
type output struct {
	run     *run
	metrics *series
	stdout  *lineParser   // nil unless metrics come from there
	file    *recordParser // nil when they do

	mu     sync.Mutex
	offset int64 // of the next byte of the log
	piece  berth.LogPiece
	pieces []berth.LogPiece
	cut    bool // the log limit was reached
	lines  []string

	position berth.LogPosition // of what was read

	line     []byte // unfinished last line of stdout
	lineAt   time.Time
	fileTail []byte // unfinished last line of the metrics file
	fileAt   int64
}

func newOutput(r *run) *output {
	o := &output{run: r, metrics: newSeries()}
	if r.who.Spec.Metrics.Source == berth.MetricsStdout {
		o.stdout = newLineParser(r.who.Spec.Metrics.Pattern)
	} else {
		o.file = newRecordParser()
	}

	return o
}

// follow reads the container's log to its end. A connection that breaks is not
// the end: Docker may restart under a container that goes on.
func (o *output) follow(ctx context.Context, exited <-chan struct{}) error {
	for last := false; ; {
		select {
		case <-exited:
			last = true
		default:
		}

		err := o.run.containers.Logs(ctx, o.run.container.ID, o.position, true, func(c berth.LogChunk) error {
			o.take(c)

			return nil
		})
		if ctx.Err() != nil || last && err == nil {
			return nil //nolint:nilerr // who ended ctx knows why
		}

		if err != nil {
			o.run.log.Warn("reading log; trying again", "attempt", o.run.who.Attempt.ID, "error", err)
		}

		ended := exited
		if last {
			ended = nil // it was looked at: pause
		}

		select {
		case <-ended:
		case <-time.After(retryEvery):
		case <-ctx.Done():
		}
	}
}

// take adds a chunk to the log, to the classifier's tail and to the metrics.
func (o *output) take(c berth.LogChunk) {
	if c.Stream == berth.Stdout {
		o.position.Stdout = c.At
		o.takeStdout(c)
	} else {
		o.position.Stderr = c.At
	}

	o.mu.Lock()
	defer o.mu.Unlock()

	if line := bytes.TrimRight(c.Data, "\r\n"); len(line) > 0 {
		o.lines = append(o.lines, strings.ToValidUTF8(string(line[:min(len(line), lineBytes)]), "\uFFFD"))
		o.lines = o.lines[max(len(o.lines)-tailLines, 0):]
	}

	o.store(c)
}

// takeStdout parses the line that a chunk ends, if metrics come from there. A progress bar rewrites its
// line by carriage returns, for longer than Docker keeps a line in one piece:
// only what is after the last of them can be part of what it shows in the end.
func (o *output) takeStdout(c berth.LogChunk) {
	if o.stdout == nil {
		return
	}

	line := slices.Concat(o.line, c.Data)
	if !bytes.HasSuffix(line, []byte("\n")) {
		if i := bytes.LastIndexByte(bytes.TrimRight(line, "\r"), '\r'); i >= 0 {
			line = line[i+1:]
		}

		o.line, o.lineAt = line[max(len(line)-longestLine, 0):], c.At

		return
	}

	o.line = nil
	o.metrics.add(o.stdout.parse(string(line), c.At)...)
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
	if o.file == nil {
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
// it is opened below the attempt's directory only (a link cannot lead out of
// it), must be a regular file, and cannot block.
func (o *output) readFile() {
	root, err := os.OpenRoot(o.run.dirs.out)
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

	if info.Size() < o.fileAt { // the job began it anew
		o.fileAt, o.fileTail, o.file = 0, nil, newRecordParser()
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

		o.metrics.add(o.file.parse(data[:end], time.Now().UTC())...)
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
		o.metrics.add(o.file.parse(o.fileTail, time.Now().UTC())...)
	}

	if len(o.line) > 0 {
		o.metrics.add(o.stdout.parse(string(o.line), o.lineAt)...)
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
