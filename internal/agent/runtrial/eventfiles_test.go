package runtrial

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/metrics"
	"github.com/berthml/berth/internal/agent/tfevents"
	"github.com/berthml/berth/internal/masking"
	"github.com/berthml/berth/internal/testkit/fake"
)

// eventData is an event file with the values of a tag at the steps from 0 on.
func eventData(t *testing.T, tag string, values ...float64) []byte {
	t.Helper()

	var out []byte

	now := float64(time.Now().Add(-time.Minute).UnixNano()) / 1e9
	for step, v := range values {
		// An Event of event.proto: 1 wall_time, 2 step, 5 summary{1 value{1 tag, 2 simple_value}}.
		value := append(binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(tag))), tag...)
		value = binary.LittleEndian.AppendUint32(append(value, 2<<3|5), math.Float32bits(float32(v)))
		summary := append(binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(value))), value...)
		event := binary.LittleEndian.AppendUint64([]byte{1<<3 | 1}, math.Float64bits(now+float64(step)))
		event = binary.AppendUvarint(append(event, 2<<3), uint64(step))
		event = append(binary.AppendUvarint(append(event, 5<<3|2), uint64(len(summary))), summary...)

		length := binary.LittleEndian.AppendUint64(nil, uint64(len(event)))
		out = slices.Concat(out, length, recordSum(length), event, recordSum(event))
	}

	return out
}

// recordSum is the masked checksum of a record's part.
func recordSum(data []byte) []byte {
	sum := crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))

	return binary.LittleEndian.AppendUint32(nil, (sum>>15|sum<<17)+0xa282ead8)
}

func plantFile(t *testing.T, path string, data []byte) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

// eventOutput reads event files for an objective, from the directory that it returns.
func eventOutput(t *testing.T, objective string) (*output, string) {
	t.Helper()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) {
		who.Spec.Metrics.Source = berth.MetricsTensorBoard
		who.Spec.Objective = &berth.Objective{Metric: objective, Goal: berth.GoalMaximize}
	})
	run := r.newRun(t)
	require.NoError(t, run.dirs.make(run.who.Trial.Params))

	return newOutput(run), run.dirs.out
}

// reports looks and returns what is new, such as loss/0=0.5, in order.
func (o *output) reports(end bool) []string {
	o.events.next = time.Time{}
	o.events.look(end)

	var all []string

	points := o.metrics.Pending(time.Now()).Points
	slices.SortStableFunc(points, func(a, b berth.MetricPoint) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Step, b.Step))
	})

	for _, p := range points {
		text := fmt.Sprint(p.Value)
		if p.Status != berth.MetricFinite {
			text = string(p.Status)
		}

		all = append(all, fmt.Sprintf("%s/%d=%s", p.Name, p.Step, text))
	}

	return all
}

func TestEventName(t *testing.T) {
	t.Parallel()

	for want, c := range map[string][2]string{
		"epoch_loss": {"logs/train", "epoch_loss"}, "val_epoch_loss": {"logs/validation", "epoch_loss"}, "val_loss": {"validation", "val_loss"},
		"eval_loss": {"eval", "loss"}, "test_acc": {"run/Test", "acc"}, "loss": {"logs/2026-11-25_12-00", "loss"}, "eval/loss": {".", "eval/loss"},
		"loss_train": {"runs/x/loss_train", "loss"}, "loss/all_val": {"runs/loss_all_val", "loss/all"}, "lo": {"loss_train", "lo"},
	} {
		require.Equal(t, want, eventName(c[0], c[1]))
	}

	require.Equal(t, "epoch_loss", epochName("loss"))
	require.Equal(t, "val_epoch_accuracy", epochName("val_accuracy"))
}

// Keras' two directories, read while they grow: the objective has the name that
// fit gives it, too.
func TestEventFiles_FollowKeras(t *testing.T) {
	t.Parallel()

	o, out := eventOutput(t, "val_accuracy")
	require.Empty(t, o.reports(false), "nothing is there yet")

	train := filepath.Join(out, "logs/20261125/train/events.out.tfevents.1764060000.box.7.0.v2")
	validation := filepath.Join(out, "logs/20261125/validation/events.out.tfevents.1764060001.box.7.1.v2")
	whole := eventData(t, "epoch_accuracy", 0.5, 0.75, 0.9)

	plantFile(t, train, whole)
	require.Equal(t, []string{"epoch_accuracy/0=0.5", "epoch_accuracy/1=0.75", "epoch_accuracy/2=0.9"}, o.reports(false))

	var got []string

	for i := range whole { // every prefix is a file that is being written
		plantFile(t, validation, whole[:i])
		got = append(got, o.reports(false)...)
	}

	plantFile(t, validation, whole)
	got = append(got, o.reports(true)...)
	require.Equal(t, []string{
		"val_accuracy/0=0.5", "val_epoch_accuracy/0=0.5", "val_accuracy/1=0.75", "val_epoch_accuracy/1=0.75", "val_accuracy/2=0.9", "val_epoch_accuracy/2=0.9",
	}, got)
	require.Empty(t, o.reports(true), "nothing twice")
	require.Empty(t, o.notes())

	value, status := o.metrics.Objective(berth.Objective{Metric: "val_accuracy", Goal: berth.GoalMaximize})
	require.Equal(t, berth.MetricFinite, status)
	require.InDelta(t, 0.9, *value, 0)
}

// A metric that has the objective's name by itself is not mixed with Keras' one.
func TestEventFiles_OwnNameWins(t *testing.T) {
	t.Parallel()

	o, out := eventOutput(t, "loss")
	plantFile(t, filepath.Join(out, "a/events.out.tfevents.1.x"), eventData(t, "loss", 3))
	plantFile(t, filepath.Join(out, "b/events.out.tfevents.2.x"), eventData(t, "epoch_loss", 4, math.NaN()))
	require.Equal(t, []string{"epoch_loss/0=4", "epoch_loss/1=nan", "loss/0=3"}, o.reports(true))
}

// Files are read in the order in which their writers began, whatever their
// directories are called: a second fit takes the place of the first.
func TestEventFiles_LaterOnesReplace(t *testing.T) {
	t.Parallel()

	o, out := eventOutput(t, "loss")
	plantFile(t, filepath.Join(out, "a/events.out.tfevents.1764060009.x"), eventData(t, "loss", 1))
	plantFile(t, filepath.Join(out, "z/events.out.tfevents.1764060001.x"), eventData(t, "loss", 9, 8))
	o.reports(true)

	value, _ := o.metrics.Objective(berth.Objective{Metric: "loss"})
	require.InDelta(t, 1.0, *value, 0)
}

func TestEventFiles_SayWhatIsCorrupt(t *testing.T) {
	t.Parallel()

	whole := eventData(t, "loss", 1, 2, 3)
	second := slices.Clone(whole)
	second[len(whole)/2] ^= 1

	var none []byte

	for name, c := range map[string]struct {
		data    []byte
		reports []string
		note    string
	}{
		"data":   {second, []string{"loss/0=1", "loss/2=3"}, `has a record with a wrong checksum at byte \d+, which was left out`},
		"length": {append(slices.Clone(whole), bytes.Repeat([]byte("garbage"), 9)...), []string{"loss/0=1", "loss/1=2", "loss/2=3"}, fmt.Sprintf("could be read up to byte %d only", len(whole))},
		"torn":   {whole[:len(whole)-tfevents.FooterBytes-1], []string{"loss/0=1", "loss/1=2"}, ""}, // the program was ended in the middle of it
		"empty":  {none, nil, ""},
	} {
		o, out := eventOutput(t, "loss")
		plantFile(t, filepath.Join(out, "events.out.tfevents.1.x"), c.data)
		require.Equal(t, c.reports, o.reports(false), name)
		require.Empty(t, o.reports(true), name)

		if c.note == "" {
			require.Empty(t, o.notes(), name)

			continue
		}

		require.Len(t, o.notes(), 1, "it is said once")
		require.Regexp(t, `its event file "events.out.tfevents.1.x" `+c.note, o.notes()[0])
	}

	o, out := eventOutput(t, "loss")
	for i := range 6 {
		plantFile(t, filepath.Join(out, fmt.Sprintf("%d.tfevents", i)), []byte("this is no event file at all"))
	}

	require.Empty(t, o.reports(true))
	require.Len(t, o.notes(), mostWrong+1)
}

func TestEventFiles_AreBounded(t *testing.T) {
	t.Parallel()

	o, out := eventOutput(t, "loss")
	o.events.left = 150
	plantFile(t, filepath.Join(out, "x.tfevents"), eventData(t, "loss", 1, 2, 3, 4, 5, 6))
	require.Less(t, len(o.reports(true)), 6)
	require.Contains(t, o.notes()[0], "are larger than 256 MiB and were read so far only")

	o, out = eventOutput(t, "loss")
	for i := range mostEventFiles + 5 {
		plantFile(t, filepath.Join(out, fmt.Sprintf("%04d.tfevents", i)), nil)
	}

	require.Empty(t, o.reports(true))
	require.Len(t, o.events.files, mostEventFiles)
	require.Contains(t, o.notes()[0], "so many files")

	o, out = eventOutput(t, "loss")
	long, name := eventData(t, strings.Repeat("x", 3*longestEvent), 1), eventData(t, strings.Repeat("x", metrics.NameBytes+1), 1)
	plantFile(t, filepath.Join(out, "x.tfevents"), slices.Concat(eventData(t, "loss", 1), long, name, eventData(t, "acc", 2)))
	require.Equal(t, []string{"acc/0=2", "loss/0=1"}, o.reports(true), "neither a long record nor a long name")
	require.Empty(t, o.notes())
	require.Less(t, eventFilesBytes-o.events.left, int64(2*longestEvent), "it is passed, not read")
}

// What a job plants beside event files is not followed, and blocks nobody.
func TestEventFiles_FollowNoLinks(t *testing.T) {
	t.Parallel()

	o, out := eventOutput(t, "loss")
	secret := t.TempDir()
	plantFile(t, filepath.Join(secret, "events.out.tfevents.1.x"), eventData(t, "loss", 1))
	require.NoError(t, os.Symlink(secret, filepath.Join(out, "dir")))
	require.NoError(t, os.Symlink(filepath.Join(secret, "events.out.tfevents.1.x"), filepath.Join(out, "events.out.tfevents.2.x")))
	require.NoError(t, os.Symlink(".", filepath.Join(out, "loop")))
	plantFile(t, filepath.Join(out, "model.keras"), eventData(t, "loss", 1))
	require.Empty(t, o.reports(true))
	require.Equal(t, []string{"it wrote no TensorBoard event file below /trial/out or its working directory"}, o.notes())

	fifo := filepath.Join(out, "fifo.tfevents")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	require.Empty(t, o.reports(true))
}

// A file that begins anew is read from its beginning.
func TestEventFiles_BegunAnew(t *testing.T) {
	t.Parallel()

	o, out := eventOutput(t, "loss")
	path := filepath.Join(out, "events.out.tfevents.1.x")
	plantFile(t, path, eventData(t, "loss", 1, 2, 3))
	require.Len(t, o.reports(false), 3)
	plantFile(t, path, eventData(t, "loss", 7))
	require.Equal(t, []string{"loss/0=7"}, o.reports(false))
}

// Programs write ./logs beside themselves; what the image has there is not theirs.
func TestEventFiles_OfTheWorkingDirectory(t *testing.T) {
	t.Parallel()

	o, _ := eventOutput(t, "loss")
	attempt := o.run.dirs.attempt
	old := filepath.Join(attempt, workName, "logs/events.out.tfevents.1.x")
	plantFile(t, old, eventData(t, "loss", 1))

	info, err := os.Lstat(old)
	require.NoError(t, err)

	marks, err := json.Marshal(workFiles{Marks: map[string]fileMark{"logs/events.out.tfevents.1.x": markOf(info)}})
	require.NoError(t, err)
	plantFile(t, filepath.Join(attempt, workManifest), marks)
	plantFile(t, filepath.Join(attempt, workName, "logs/events.out.tfevents.2.x"), eventData(t, "loss", 5))

	require.Equal(t, []string{"loss/0=5"}, o.reports(true))
}

// A time that no writer can mean is the time at which it was read.
func TestWallTime(t *testing.T) {
	t.Parallel()

	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	require.Equal(t, now.Add(-90*time.Second), wallTime(float64(now.Unix()-90), now))

	for _, wrong := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, float64(now.Unix() + 1)} {
		require.Equal(t, now, wallTime(wrong, now))
	}
}

// A run that adopts the container reads on; what it reads again is stored once.
func TestRun_EventFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.books.says(func(who *berth.Assignee) {
			who.Spec.Metrics.Source = berth.MetricsTensorBoard
			who.Spec.Objective = &berth.Objective{Metric: "val_loss", Goal: berth.GoalMinimize, Strategy: berth.StrategyMean}
		})

		file := func(box *fake.Process) string {
			i := slices.IndexFunc(box.Launch.Mounts, func(m berth.Mount) bool { return m.Target == mountOut })

			return filepath.Join(box.Launch.Mounts[i].Source, "validation/events.out.tfevents.1.x")
		}
		whole := eventData(t, "epoch_loss", 0.5, 0.25, 0.75)

		box := r.readFor(t, 5*time.Second, func(box *fake.Process) {
			box.Print(berth.Stdout, "val_loss=99\n")
			plantFile(t, file(box), whole[:len(whole)-10])
		})
		require.Len(t, r.books.metrics(t), 4, "two steps by two names")
		plantFile(t, file(box), whole)
		got := ends(t, box, r.start(t.Context(), r.order()), "", 0)
		require.Equal(t, berth.FailureOK, got.Kind, got.Message)
		require.InDelta(t, 0.5, *got.Value, 1e-9, "the mean of all three, none of them twice")

		stored := r.books.metrics(t)
		require.Len(t, stored, 6)
		require.InDelta(t, 0.75, stored["val_epoch_loss/ii"].Value, 0)
		require.InDelta(t, 0.25, stored["val_loss/i"].Value, 0)
	})
}

// Names of event files are quoted in notes.
func TestEventFiles_NotesShowNoValue(t *testing.T) {
	t.Parallel()

	const value = `run"of\today`

	o, out := eventOutput(t, "loss")
	o.run.mask = masking.New([][]byte{[]byte(value)})
	plantFile(t, filepath.Join(out, value, "events.out.tfevents.1"), []byte("this is no event file at all"))
	o.reports(true)
	require.Len(t, o.notes(), 1)
	require.Contains(t, o.notes()[0], "its event file \"************/events.out.tfevents.1\" could be read up to byte 0 only")
}
