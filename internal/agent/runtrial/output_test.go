package runtrial

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

// newRun is a run whose container was not started.
func (r *rig) newRun(t require.TestingT) *run {
	who := r.who(t)

	return &run{Executor: r.Executor, order: r.order(), who: who, dirs: r.dirs(who)}
}

func chunk(stream, text string, second int) berth.LogChunk {
	return berth.LogChunk{Stream: stream, At: noon.Add(time.Duration(second) * time.Second), Data: []byte(text)}
}

func TestOutput_LogPieces(t *testing.T) {
	t.Parallel()

	r := setup(t)
	o := newOutput(r.newRun(t))
	o.take(chunk(berth.Stdout, "one\n", 1))
	o.take(chunk(berth.Stdout, "two\n", 2))
	o.take(chunk(berth.Stderr, "err \xff\x00\n", 3))
	o.take(chunk(berth.Stdout, strings.Repeat("x", pieceBytes-2)+"\n", 4))
	o.take(chunk(berth.Stdout, "next piece\n", 5))
	require.NoError(t, o.write(t.Context(), false))

	require.Equal(t, "one\ntwo\nerr \xff\x00\n"+strings.Repeat("x", pieceBytes-2)+"\nnext piece\n", r.books.text(t))
	require.Equal(t, berth.LogPiece{Offset: 0, Stream: berth.Stdout, At: noon.Add(2 * time.Second), Data: []byte("one\ntwo\n")}, r.books.pieces(t)[0])
	require.Equal(t, berth.Stderr, r.books.pieces(t)[8].Stream)

	for offset, p := range r.books.pieces(t) {
		require.LessOrEqual(t, len(p.Data), pieceBytes, "piece at %d", offset)
	}

	require.Equal(t, "err \uFFFD\x00", o.tail.lines[2], "the classifier reads valid text")
}

func TestOutput_KeepsTheLastLinesForTheClassifier(t *testing.T) {
	t.Parallel()

	o := newOutput(setup(t).newRun(t))
	for i := range tailLines + 5 {
		o.take(chunk(berth.Stderr, fmt.Sprintf("line %d\n", i), i))
	}

	o.take(chunk(berth.Stderr, "\n", 1))
	o.take(chunk(berth.Stdout, strings.Repeat("é", lineBytes), 1))

	lines := o.tail.lines
	require.Len(t, lines, tailLines)
	require.Equal(t, "line 6", lines[0])
	require.LessOrEqual(t, len(lines[tailLines-1]), lineBytes+2)
}

func TestOutput_StoresUpToTheLimit(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.config.Bounds.LogLimit = 10

	read := func() {
		o := newOutput(r.newRun(t))
		for i := range 5 {
			o.take(chunk(berth.Stdout, "123456\n", i))
		}

		require.NoError(t, o.write(t.Context(), false))
	}

	read()
	require.Equal(t, "123456\n123456\n\n[berth: the log limit is reached; of what follows the last 256 KiB are kept]\n", r.books.text(t))

	read()
	require.Len(t, r.books.pieces(t), 2, "an adopting run does not mark it again")
}

// The reason why a job of many hours failed is at the end of its log.
func TestOutput_KeepsTheEndOfALongLog(t *testing.T) {
	t.Parallel()

	for lines, want := range map[int]string{
		2: "line 0\nline 1\n",
		3: "line 0\nline 1\n#ine 2\n", // the mark takes one byte's place
		4: "line 0\nline 1\n#ine 2\nline 3\n",
		9: "line 0\nline 1\n#line 7\nline 8\n",
	} {
		r := setup(t)
		r.config.Bounds.LogLimit, r.config.Bounds.LogEnd = 10, 14
		o := newOutput(r.newRun(t))

		for i := range lines {
			o.take(chunk(berth.Stdout, fmt.Sprintf("line %d\n", i), i))
		}

		pieces := o.finish().Pieces
		text, ends := "", map[int64]bool{}

		for _, p := range pieces {
			require.False(t, ends[p.Offset], "an offset is stored once")
			ends[p.Offset] = true

			if p.Stream == streamBerth {
				text += "#"
			} else {
				text += string(p.Data)
			}
		}

		require.Equal(t, want, text)
	}
}

// Runs that are cut off anywhere follow each other. Each stores what the ones before have
// not stored, and has all that came before in its metrics.
func TestOutput_ResumesWithoutGapOrRepeat(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(rt *rapid.T) {
		r := setup(t)
		r.config.Bounds.LogLimit = int64(rapid.IntRange(1, 60).Draw(rt, "limit"))

		var (
			chunks []berth.LogChunk
			whole  string
			lines  int
			sum    float64 // of what they print
		)

		for i, second := range rapid.SliceOfNDistinct(rapid.IntRange(0, 1000), 0, 12, rapid.ID[int]).Draw(rt, "stamps") { // the clock jumps
			c := chunk(berth.Stdout, fmt.Sprintf("m=%d\n", i), second)
			if rapid.Bool().Draw(rt, "stderr") {
				c = chunk(berth.Stderr, string(rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(rt, "text")), second)
			} else {
				lines++
				sum += float64(i)
			}

			chunks = append(chunks, c)
			whole += string(c.Data)
		}

		adopt := func() *output {
			run := r.newRun(rt)
			run.container.ID, run.kept = "c", run.dirs.record("c")
			require.NoError(rt, run.dirs.make(nil))

			return newOutput(run)
		}

		for range rapid.IntRange(1, 4).Draw(rt, "runs") {
			o := adopt()
			stop := rapid.IntRange(0, len(chunks)).Draw(rt, "cut off after")

			for _, c := range chunks[:stop] {
				require.True(rt, o.take(c))

				if rapid.IntRange(0, 2).Draw(rt, "flush") == 0 {
					require.NoError(rt, o.write(t.Context(), false))
				}
			}
		}

		o := adopt()
		for _, c := range chunks {
			o.take(c)
		}

		r.books.logErrs = []error{nil, berth.Errorf(berth.KindUnavailable, "away")}
		_ = o.write(t.Context(), false)
		r.books.logErrs = nil
		require.NoError(rt, o.write(t.Context(), false))

		stored := r.books.text(t)
		text, marked := strings.CutSuffix(stored, "\n[berth: the log limit is reached; of what follows the last 256 KiB are kept]\n")
		require.True(rt, strings.HasPrefix(whole, text))
		require.Equal(rt, marked, len(text) < len(whole), "all is there, or it says that not")
		require.Less(rt, len(text), int(r.config.Bounds.LogLimit)+8, "the limit holds up to one chunk")
		require.Len(rt, r.books.metrics(t), lines)

		if lines > 0 {
			mean, _ := o.metrics.Objective(berth.Objective{Metric: "m", Strategy: berth.StrategyMean})
			require.InDelta(rt, sum/float64(lines), *mean, 1e-9, "each line counts once")
		}

		require.False(rt, o.gap)
	})
}

func TestOutput_PrintedLinesMayComeInPieces(t *testing.T) {
	t.Parallel()

	r := setup(t)

	o := newOutput(r.newRun(t))
	for i, text := range []string{"acc=0.", "5\n", "1/2 acc: 0.1\r2/2 acc", ": 0.7\r", "\n", "acc=\xe2\x82", "\xac acc=0.25"} {
		o.take(chunk(berth.Stdout, text, i))
	}

	for i, text := range []string{"acc=0", ".9\n"} { // a line of its own, in pieces
		o.take(chunk(berth.Stderr, text, 8+i))
	}

	rest := o.finish()
	require.NoError(t, r.records.PutMetrics(t.Context(), attemptID, token, rest.Points))

	value := func(step int) float64 { return r.books.metrics(t)["acc/"+strings.Repeat("i", step)].Value }
	require.InDelta(t, 0.5, value(1), 0)
	require.InDelta(t, 0.7, value(2), 0)
	require.InDelta(t, 0.9, value(3), 0, "loggers print to standard error")
	require.InDelta(t, 0.25, value(4), 0, "the last line lacks its end")
	require.Len(t, r.books.metrics(t), 4)
}

// fileOutput is one that reads a metrics file, and where that file goes.
func fileOutput(t *testing.T) (*output, string) {
	t.Helper()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source = berth.MetricsFile })
	run := r.newRun(t)
	require.NoError(t, run.dirs.make(run.who.Trial.Params))

	return newOutput(run), filepath.Join(run.dirs.out, metricsName)
}

func (o *output) steps(t *testing.T) []int64 {
	t.Helper()

	o.file.read(math.MaxInt64)

	var steps []int64
	for _, p := range o.metrics.Pending(time.Now()).Points {
		steps = append(steps, p.Step)
	}

	return steps
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()

	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestReadFile_FollowsWholeLines(t *testing.T) {
	t.Parallel()

	o, path := fileOutput(t)
	require.Empty(t, o.steps(t), "not there yet")

	appendTo(t, path, "{\"step\":1,\"metrics\":{\"a\":1}}\n{\"step\":2,\"met")
	require.Equal(t, []int64{1}, o.steps(t))
	require.Empty(t, o.steps(t))

	appendTo(t, path, "rics\":{\"a\":1}}\ngarbage\n{\"step\":3,\"metrics\":{\"a\":1}}\n")
	require.Equal(t, []int64{2, 3}, o.steps(t))

	require.NoError(t, os.WriteFile(path, []byte("{\"metrics\":{\"a\":1}}\n"), 0o600))
	require.Equal(t, []int64{1}, o.steps(t), "a file that was begun anew is read anew")
}

// A job may write its file again from the start each epoch. It counts as it is then.
func TestReadFile_WrittenAnew(t *testing.T) {
	t.Parallel()

	long := strings.Repeat(" ", tailBytes/2)

	for name, c := range map[string]struct {
		epochs []string
		want   float64 // the mean of all that counts
	}{
		"each epoch in place of the one before": {[]string{`{"epoch": 1, "acc": 0.51}`, `{"epoch": 2, "acc": 0.72}`, `{"epoch": 3, "acc": 0.93}`}, 0.93},
		"ever longer":                           {[]string{`{"acc": 0.5}`, `{"acc": 0.725}`, `{"acc": 0.93125}`}, 0.93125},
		"the same end":                          {[]string{`{"acc": 0.5` + long + `}`, `{"acc": 0.7` + long + `}`}, 0.7},
		"all epochs again, and one more":        {[]string{`{"acc": 0.5}`, "{\"acc\": 0.5}\n{\"acc\": 0.7}"}, 0.6},
		"the same again":                        {[]string{`{"acc": 0.5}`, `{"acc": 0.5}`, "{\"acc\": 0.5}\n{\"acc\": 0.7}"}, 0.6},
	} {
		for how, write := range map[string]func(path, text string, at time.Time) error{
			"opened anew": func(path, text string, at time.Time) error {
				return errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at))
			},
			"renamed": func(path, text string, _ time.Time) error {
				return errors.Join(os.WriteFile(path+".tmp", []byte(text), 0o600), os.Rename(path+".tmp", path))
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()

				o, path := fileOutput(t)

				for i, text := range c.epochs {
					require.NoError(t, write(path, text+"\n", noon.Add(time.Duration(i)*time.Second)))
					o.file.read(math.MaxInt64)
					o.file.read(math.MaxInt64)
				}

				value, _ := o.metrics.Objective(berth.Objective{Metric: "acc", Strategy: berth.StrategyMean})
				require.NotNil(t, value)
				require.InDelta(t, c.want, *value, 1e-9)
			})
		}
	}
}

func TestReadFile_SkipsALineWithoutEnd(t *testing.T) {
	t.Parallel()

	o, path := fileOutput(t)
	appendTo(t, path, strings.Repeat("x", 3*longestLine)+"\n{\"step\":1,\"metrics\":{\"a\":1}}\n")
	require.Equal(t, []int64{1}, o.steps(t))
	require.LessOrEqual(t, len(o.file.rest), longestLine)
}

// The file is the job's: it must not make us read another file, nor wait.
func TestReadFile_IsNotLedOutAndDoesNotBlock(t *testing.T) {
	t.Parallel()

	record := []byte("{\"step\":1,\"metrics\":{\"a\":1}}\n")

	secret := filepath.Join(t.TempDir(), "secret")
	plantFile(t, secret, record)

	for name, plant := range map[string]func(path string) error{
		"symbolic link": func(path string) error { return os.Symlink(secret, path) },
		"link by parents": func(path string) error {
			return errors.Join(os.WriteFile(filepath.Join(filepath.Dir(filepath.Dir(path)), "secret"), record, 0o600), os.Symlink("../secret", path))
		},
		"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o, path := fileOutput(t)
			require.NoError(t, plant(path))
			require.Empty(t, o.steps(t))
		})
	}
}

// autoOutput is what an attempt of a sweep without a source says; the function adopts it.
func autoOutput(t *testing.T, o berth.Objective) (*rig, func() *output) {
	t.Helper()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source, who.Spec.Objective = berth.MetricsAuto, &o })

	return r, func() *output {
		run := r.newRun(t)
		run.container.ID, run.kept = "c", run.dirs.record("c")
		require.NoError(t, run.dirs.make(nil))

		return newOutput(run)
	}
}

// A worker is killed after it stored what the job printed. The job writes its result to its
// metrics file meanwhile, which the next worker reads first: the choice stands, no row of
// another source is among these, and the result takes the place of the curve at the end.
func TestOutput_TheChoiceOutlivesAKilledWorker(t *testing.T) {
	t.Parallel()

	_, adopt := autoOutput(t, berth.Objective{Metric: "acc", Goal: berth.GoalMaximize})
	killed := adopt()
	killed.take(chunk(berth.Stdout, "acc=0.5\n", 1))
	require.NoError(t, killed.write(t.Context(), false))

	next := adopt()
	appendTo(t, filepath.Join(next.run.dirs.out, metricsName), `{"epoch": 3, "acc": 0.9}`+"\n")
	next.readFiles(readPerLook)
	next.take(chunk(berth.Stdout, "acc=0.5\n", 1))
	next.take(chunk(berth.Stdout, "acc=0.75\n", 2))
	require.Len(t, next.metrics.Pending(time.Now()).Points, 2, "of what was printed")

	rest := next.finish()
	require.Equal(t, []string{"acc"}, rest.Drop)
	require.Len(t, rest.Points, 1)
	require.Equal(t, int64(3), rest.Points[0].Step)
}

// A metrics file holds what programs print, too: records of several lines, lists, and a last
// line without an end. What it holds beside that is said.
func TestReadFile_Forms(t *testing.T) {
	t.Parallel()

	for text, notes := range map[string][]string{
		"{\n  \"epoch\": 3,\n  \"note\": \"x\",\n  \"acc\": 0.91\n}\n": nil,
		`[{"epoch": 1, "acc": 0.5}, {"epoch": 2, "acc": 0.91}]` + "\n": nil,
		`{"acc": 0.91, "loss": nan}`:                                   nil,
		"garbage\n\n{\"acc\": 0.91}\n":                                 {`a line of its metrics file holds no metric that Berth can read: "garbage"`},
	} {
		o, path := fileOutput(t)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		o.file.read(math.MaxInt64)
		o.finish()

		value, _ := o.metrics.Objective(berth.Objective{Metric: "acc", Goal: berth.GoalMaximize})
		require.NotNil(t, value, text)
		require.InDelta(t, 0.91, *value, 0)
		require.Equal(t, notes, o.notes())
	}
}
