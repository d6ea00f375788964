package runtrial

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/metrics"
	"github.com/berthml/berth/internal/agent/sampling"
	"github.com/berthml/berth/internal/failure"
)

const (
	pieceBytes  = 64 << 10 // of log, at most, in one row
	longestLine = 1 << 20  // with metrics; a longer one is skipped, or its beginning
	// pointsAtOnce go into one statement, which takes 0.1 s.
	pointsAtOnce = 10_000
	// streamBerth is the stream of what Berth itself says in a log.
	streamBerth = "berth"
	// dockerLogBytes is what Docker keeps of a log (internal/agent/docker, logConfig).
	dockerLogBytes = 30 << 20
)

// output is what a container says: its log and its metrics. A run that adopts the
// container reads them from their start; what is stored already is stored once.
//
// While the database is away, what could not be written waits in memory, which
// Bounds keep small: 16 MiB of log, and 36 MB of metrics for an hour of a job
// that reports as many as it may. What still waits when the container has
// exited goes into the verdict.
type output struct {
	run     *run
	metrics *metrics.Series
	printed *metrics.Reader // nil unless metrics come from what it prints
	source  string          // that is written down as chosen
	file    *metricsFile    // nil unless they come from the metrics file
	events  *eventFiles     // nil unless they come from event files

	shim     *shimRead // nil = the attempt has no shim
	shimFile *recordFile
	files    sync.Mutex // of reading them

	mu     sync.Mutex
	offset int64 // of the next byte of the log
	piece  berth.LogPiece
	pieces []berth.LogPiece
	cut    bool // the log limit was reached
	cutAt  int64
	last   logEnd // of what is behind it
	torn   bool   // the end of the log cannot be read
	tail   tail

	read  berth.LogPosition // what this run read
	again berth.LogResume   // from there, over another connection
	gap   bool              // Docker had dropped a part of the log
	first berth.LogPosition // of the log's first piece
	until time.Time         // stamp up to which an earlier run took the log in; zero = it is all read again

	earlier reading // of an earlier run
	stored  reading // up to which all is in the database; for the goroutine that writes

	judge  *judge
	pace   *pace
	readAt atomic.Int64          // when the last chunk was, Unix time in ns
	flood  chan<- failure.Intent // told once when the log is a flood; nil = nobody asks

	lines map[string][]byte // unfinished last ones, by stream
}

func newOutput(r *run) *output {
	spec := r.who.Spec
	objective := ""

	if spec.Objective != nil {
		objective = spec.Objective.Metric
	}

	sources, parameters := metrics.SourcesOf(spec), make([]string, len(spec.Parameters))
	for i, p := range spec.Parameters {
		parameters[i] = p.Name
	}

	o := &output{
		run: r, earlier: r.kept.Log, stored: r.kept.Log, pace: newPace(r.config.Bounds), lines: make(map[string][]byte),
		metrics: metrics.NewSeries(metrics.NewThinner(r.config.Bounds.MetricRate, r.config.Bounds.MetricLimit, time.Since(r.startedAt)), r.mask, objective, sources...),
	}

	for _, source := range sources {
		switch source {
		case berth.MetricsFile:
			o.file = newMetricsFile(r, o.metrics, objective)
		case berth.MetricsShim:
			o.hearShim()
		case berth.MetricsStdout:
			o.printed = metrics.NewReader(spec.Metrics.Pattern, objective, parameters...)
		case berth.MetricsTensorBoard:
			o.events = newEventFiles(r, o.metrics)
		}
	}

	if o.auto() {
		o.source = r.kept.Source
		o.metrics.GoOn(o.source)
	} else { // the shim's metrics wait for the end
		o.metrics.GoOn(sources[0])
	}

	return o
}

// follow reads the container's log to its end. A connection that breaks is not
// the end: Docker may restart under a container that goes on. Errors:
// errLogStuck, as ctx's cause; not_found when the container was removed before
// its metrics were read.
func (o *output) follow(ctx context.Context, exited <-chan struct{}) error {
	brought := true // the read before brought something new

	for {
		last, goesOn := isOver(exited), brought
		brought = false

		err := o.run.containers.Logs(ctx, o.run.container.ID, o.goOn(), true, func(c berth.LogChunk) error {
			if !o.take(c) {
				if goesOn { // to something new; else the connection breaks again and again
					o.readAt.Store(time.Now().UnixNano())
				}

				return nil
			}

			brought = true

			if o.flood != nil && o.pace.floods(c) {
				o.flood <- failure.IntentFlood
				o.flood = nil
			}

			o.pace.wait(ctx, exited, c)
			o.readAt.Store(time.Now().UnixNano())

			return nil
		})

		switch {
		case errors.Is(context.Cause(ctx), errLogStuck):
			return errLogStuck
		case ctx.Err() != nil:
			return nil //nolint:nilerr // who ended ctx knows why
		case last && err == nil:
			return nil
		case last && berth.KindOf(err) == berth.KindNotFound && o.fromLog():
			return err // its metrics are gone with the container
		case last && berth.KindOf(err) != berth.KindUnavailable:
			o.run.log.Error("the end of the log cannot be read", "attempt", o.run.who.Attempt.ID, "error", err)

			o.torn = true

			return nil
		case err != nil:
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

func isOver(exited <-chan struct{}) bool {
	select {
	case <-exited:
		return true
	default:
		return false
	}
}

// goOn begins another read of the log, after what this run has read.
func (o *output) goOn() berth.LogPosition {
	o.mu.Lock()
	defer o.mu.Unlock()

	o.again = berth.LogResume{From: o.read}

	return o.read
}

// take adds a chunk to the log, to the classifier's tail and to the metrics. It
// reports whether this run reads the chunk for the first time.
func (o *output) take(c berth.LogChunk) bool {
	o.mu.Lock()
	defer o.mu.Unlock()

	before := o.again.Read(c)
	if o.again.Lost {
		o.again.Lost, o.gap = false, true
		clear(o.lines)
	}

	if before {
		return false
	}

	o.read.Pass(c)
	o.begin(c)

	shown := o.run.mask.Chunk(c)
	o.tail.take(shown)

	if c.At.After(o.until) {
		o.takeLine(c) // as it is: a number may hold what is a short secret
		o.store(shown)
	}

	return true
}

// readFiles reads what was appended to the files.
func (o *output) readFiles(most int64) {
	o.files.Lock()
	defer o.files.Unlock()

	if o.file != nil {
		o.file.read(most)
	}

	o.events.look(most == math.MaxInt64)

	if o.shimFile != nil {
		o.shimFile.read(most)
	}
}

// flush tells the database that the container runs, and every half second what it reports
// and what it holds. A database that is away does not end the attempt: the rest waits, and is
// part of the verdict. A worker that leaves stores what it can in lastWriteFor. Errors: fenced.
func (o *output) flush(ctx context.Context, exited <-chan struct{}, w *sampling.DeviceWatch) (err error) {
	defer o.keep() // for the run that adopts the container

	announced, told := false, int64(0)

	for n := 1; ; n++ {
		if !announced {
			if announced, err = o.run.announce(ctx); err != nil {
				return err
			}
		}

		select {
		case <-time.After(untilNext(flushEvery)):
		case <-exited:
			o.readFiles(math.MaxInt64)

			return nil
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWriteFor)
			defer cancel()

			return o.write(ctx, true)
		}

		o.readFiles(readPerLook)

		seldom := n%int(keepUsageEvery/flushEvery) == 0
		if err := o.write(ctx, seldom); err != nil {
			return err
		}

		if seldom {
			o.keep()
		}

		told = o.run.tellHeld(ctx, told, o, w)
	}
}

// finish takes in what the last lines hold, says in the log what is missing,
// and returns everything that is not in the database. Nobody reads or writes
// any more.
func (o *output) finish() pending {
	if o.file != nil {
		o.file.end()
	}

	o.shimFile.end()

	for _, stream := range slices.Sorted(maps.Keys(o.lines)) {
		o.readLines(stream, o.lines[stream], time.Now().UTC())
	}

	o.metrics.End()

	o.mu.Lock()
	defer o.mu.Unlock()

	o.push()
	o.pieces = append(o.pieces, o.last.after(o.cutAt)...)

	for _, note := range o.notes() {
		o.mark(note)
	}

	return pending{Batch: o.metrics.Pending(time.Now()), Pieces: o.pieces, Rungs: o.judge.rest()}
}

// notes say what was left out; empty ones say nothing.
func (o *output) notes() []string {
	notes := slices.Concat(o.metrics.Notes(), o.file.notes(), o.events.notes(), o.judge.notes())

	if o.fromLog() {
		if o.pace.lossy {
			notes = append(notes, "it printed faster than Docker keeps, so lines with metrics may be lost; write them to the file that TRIAL_METRICS_FILE names")
		}

		notes = append(notes, o.printed.Near.Note(o.quote))
	}

	if o.gap {
		notes = append(notes, o.gapNote())
	}

	if o.torn {
		notes = append(notes, "the end of its log could not be read")
	}

	return slices.DeleteFunc(notes, func(note string) bool { return note == "" })
}

// write stores what waits, also of what the attempt held over time. What could not be stored
// waits for the next time. Errors: fenced.
func (o *output) write(ctx context.Context, memory bool) error {
	o.mu.Lock()
	o.push()
	p, read := pending{Batch: o.metrics.Pending(time.Now()), Pieces: o.pieces}, o.reading()
	o.pieces = nil
	o.mu.Unlock()

	if memory {
		p.Memory = o.run.trace.Take()
	}

	err := o.keepSource()
	if err == nil {
		err = o.run.storePending(ctx, &p)
	}

	if err == nil {
		err = o.judge.ask(ctx)
	}

	if err == nil {
		o.stored = read
	}

	o.metrics.Restore(p.Batch)

	if len(p.Memory) > 0 {
		o.run.trace.Restore(p.Memory)
	}

	o.mu.Lock()
	defer o.mu.Unlock()

	o.pieces = append(p.Pieces, o.pieces...)

	if err != nil && berth.KindOf(err) != berth.KindFenced {
		if ctx.Err() == nil {
			o.run.log.Warn("storing metrics and log; trying again", "attempt", o.run.who.Attempt.ID, "error", err)
		}

		return nil
	}

	return err
}
