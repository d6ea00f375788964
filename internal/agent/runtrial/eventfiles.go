package runtrial

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/metrics"
	"github.com/berthml/berth/internal/agent/tfevents"
	"github.com/berthml/berth/internal/failure"
)

const (
	// eventsEvery is how often event files are looked at: their writers keep up to two minutes of events.
	eventsEvery = time.Second
	// mostEventFiles are read, and eventFilesBytes of them.
	mostEventFiles  = 1000
	eventFilesBytes = 256 << 20
	// longestEvent is read of a record; a longer one holds a graph or images.
	longestEvent = 1 << 20
)

// eventFiles are the event files that a job writes for TensorBoard, below
// /trial/out and in its working directory. A run that adopts the container reads
// them from their beginning, as it does the metrics file: what is stored already
// is stored as it was. Nil = they are not read.
type eventFiles struct {
	run     *run
	metrics *metrics.Series
	roots   []string // of the host, which the job writes to

	objective string // the metric by which trials are ranked; empty = there is none
	alias     string // Keras' name of it
	likeness  int    // of the tags that are taken for it; 0 = none was seen

	files []*eventFile // the oldest first
	known map[string]bool
	image *workFiles // what of the working directory is the image's; nil = not read yet
	next  time.Time  // when to look again
	left  int64      // bytes that may still be read
	many  bool       // there were more files, or places to look for them
	wrong []string   // what of which files could not be read
}

// eventFile is one of them.
type eventFile struct {
	follower

	rest    []byte // unfinished last record
	decoder *tfevents.Decoder
}

func (f *eventFile) parent() string { return filepath.ToSlash(filepath.Dir(f.name)) }

func newEventFiles(r *run, metrics *metrics.Series) *eventFiles {
	e := &eventFiles{
		run: r, metrics: metrics, roots: []string{r.dirs.out, r.dirs.work()},
		known: make(map[string]bool), left: eventFilesBytes,
	}

	if o := r.who.Spec.Objective; o != nil {
		e.objective, e.alias = o.Metric, epochName(o.Metric)
	}

	return e
}

// look reads what was appended since the last look. At the end it reads all.
func (e *eventFiles) look(end bool) {
	if e == nil || !end && time.Now().Before(e.next) {
		return
	}

	began := time.Now()

	e.find()

	most := int64(readPerLook)
	if end {
		most = math.MaxInt64
	}

	for _, f := range e.files {
		most = f.read(most)
	}

	// A job with very many files is looked at less often.
	e.next = began.Add(max(eventsEvery, e.run.walkPause(time.Since(began))))
}

// take stores the scalars of a record.
func (e *eventFiles) take(f *eventFile, scalars []tfevents.Scalar) {
	for _, s := range scalars {
		name := eventName(f.parent(), s.Tag)

		p, ok := metrics.NewPoint(name, strconv.FormatFloat(s.Value, 'g', -1, 64), wallTime(s.WallTime, time.Now()))
		if !ok {
			continue
		}

		p.Step = s.Step

		like := e.likenessOf(name)
		if like > 0 && (e.likeness == 0 || like < e.likeness) {
			if e.likeness > 0 { // what was taken for it before is another metric
				e.metrics.Forget(berth.MetricsTensorBoard, e.objective)
			}

			e.likeness = like
		}

		if name != e.objective {
			e.metrics.Add(berth.MetricsTensorBoard, p)
		}

		if like > 0 && like == e.likeness {
			p.Name = e.objective
			e.metrics.Add(berth.MetricsTensorBoard, p)
		}
	}
}

// likenessOf says how much a metric is like the objective, the lower the more; 0 = it is
// another. "Loss/val" and "Val Loss" stand for val_loss, as in what a job prints.
func (e *eventFiles) likenessOf(name string) int {
	switch {
	case e.objective == "":
		return 0
	case name == e.objective:
		return 1
	case name == e.alias:
		return 2
	case failure.PlainName(name) == failure.PlainName(e.objective):
		return 3
	default:
		return 0
	}
}

// wallTime is when a value was written, by its writer's word; now where that cannot be.
func wallTime(seconds float64, now time.Time) time.Time {
	const aDay = 24 * 60 * 60

	if at := float64(now.Unix()); !(seconds > at-365*aDay && seconds < at) {
		return now.UTC()
	}

	return time.UnixMicro(int64(seconds * 1e6)).UTC()
}

// older orders files by when their writer began, which their names say:
// events.out.tfevents.<seconds since 1970>.<host>…
func older(a, b *eventFile) int {
	return cmp.Or(strings.Compare(stamp(a.name), stamp(b.name)), strings.Compare(a.name, b.name), strings.Compare(a.dir, b.dir))
}

func stamp(path string) string {
	_, rest, _ := strings.Cut(filepath.Base(path), "tfevents.")
	digits, _, _ := strings.Cut(rest, ".")

	return digits
}

// notes say what was left out.
func (e *eventFiles) notes() []string {
	if e == nil {
		return nil
	}

	notes := slices.Clone(e.wrong)

	if len(e.files) == 0 {
		notes = append(notes, "it wrote no TensorBoard event file below /trial/out or its working directory")
	}

	if e.many {
		notes = append(notes, fmt.Sprintf("it wrote so many files that only %d event files among the first %d files were read", mostEventFiles, mostEntries))
	}

	if slices.ContainsFunc(e.files, func(f *eventFile) bool { return f.cut }) {
		notes = append(notes, "its event files are larger than "+berth.BytesText(eventFilesBytes)+" and were read so far only")
	}

	return notes
}

// isJobs reports whether a file is the job's own: the image's working directory
// may have event files of earlier days.
func (e *eventFiles) isJobs(root, name string, info os.FileInfo) bool {
	if root == e.run.dirs.out {
		return true
	}

	if e.image == nil { // without it all are the job's
		e.image = new(e.run.dirs.workFiles())
	}

	return e.image.Marks[name] != markOf(info)
}
