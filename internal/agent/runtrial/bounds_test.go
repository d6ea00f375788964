package runtrial

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

func TestPace_FloodIsAnAverageOverTime(t *testing.T) {
	t.Parallel()

	const mib = 1 << 20

	bounds := Bounds{LogRate: 5 * mib, LogFloodFor: 30 * time.Second}.orDefault()

	for name, test := range map[string]struct {
		bytes func(second int) int // printed in each second
		want  int                  // second in which it is a flood; -1 = never
	}{
		"just within the rate": {func(int) int { return 5 * mib }, -1},
		"100 MiB a second":     {func(int) int { return 100 * mib }, 30},
		"a short burst":        {func(s int) int { return map[bool]int{true: 100 * mib}[s < 1] }, -1},
		"bursts with pauses":   {func(s int) int { return map[bool]int{true: 20 * mib}[s%5 == 0] }, -1},
		"a little too fast":    {func(int) int { return 6 * mib }, 34}, // the burst lasts 4 s
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p, got, data := newPace(bounds), -1, make([]byte, 16<<10)

			for second := range 60 {
				left := test.bytes(second)
				for i := 0; left > 0; i++ {
					c := berth.LogChunk{At: noon.Add(time.Duration(second)*time.Second + time.Duration(i)), Data: data}
					left -= len(c.Data)

					if p.floods(c) && got < 0 {
						got = second
					}
				}

				if p.floods(berth.LogChunk{At: noon.Add(time.Duration(second)*time.Second + 999*time.Millisecond), Data: []byte("x")}) && got < 0 {
					got = second
				}
			}

			if test.want < 0 {
				require.Equal(t, -1, got)
			} else {
				require.InDelta(t, test.want, got, 2)
			}
		})
	}
}

func TestPace_ShortLinesCost(t *testing.T) {
	t.Parallel()

	p := newPace(Bounds{LogRate: 1 << 20, LogFloodFor: time.Second}.orDefault())
	flood := false

	for i := range 10_000 { // 20 kB in 4 s
		flood = flood || p.floods(berth.LogChunk{At: noon.Add(time.Duration(i) * 400 * time.Microsecond), Data: []byte("x\n")})
	}

	require.True(t, flood)
}

func TestRun_FloodIsStopped(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.config.Bounds.LogRate, r.config.Bounds.LogFloodFor = 1<<20, 100*time.Millisecond

	box, ended := r.begin(t)
	flood(box, 40, 64<<10, 10*time.Millisecond)

	got := came(t, ended)
	require.Equal(t, berth.FailureLogFlood, got.Kind)
	require.Contains(t, got.Message, "more than 1 MiB of log a second for 100ms")
	require.Equal(t, []string{"stop " + box.Container().ID, "remove " + box.Container().Name}, r.docks.called())
}

// flood prints chunks that Docker stamped one after the other, so far apart.
func flood(p *fake.Process, chunks, size int, apart time.Duration) {
	for i := range chunks {
		p.PrintAt(noon.Add(time.Duration(i+1)*apart), berth.Stdout, strings.Repeat("x", size-1)+"\n")
	}
}

func TestRun_SaysThatLinesMayBeLost(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.config.Bounds.LogRate = 1 << 20

	box, ended := r.begin(t)
	flood(box, 40, 64<<10, time.Millisecond)
	got := ends(t, box, ended, "", 0)
	require.Equal(t, berth.FailureNoResult, got.Kind)
	require.Contains(t, got.Message, `never reported "acc"`)
	require.Contains(t, got.Message, "lines with metrics may be lost; write them to the file that TRIAL_METRICS_FILE names")
}

// A model that cannot be saved takes nothing from the result that the program called final.
func TestRun_AFinalResultStands(t *testing.T) {
	t.Parallel()

	for record, want := range map[string]*float64{`{"type": "final", "acc": 0.9}`: new(0.9), `{"acc": 0.9}`: nil} {
		r := setup(t)
		box, ended := r.begin(t)
		box.PrintAt(noon, berth.Stdout, record+"\n")
		got := ends(t, box, ended, "", 1)
		require.Equal(t, want, got.Value, record)
		require.Equal(t, want != nil, got.Kind == berth.FailureOK, got.Message)
	}
}

func TestRun_FilesOverTheQuota(t *testing.T) {
	t.Parallel()

	for name, dir := range map[string]func(dirs) string{
		"output":     func(d dirs) string { return d.out },
		"checkpoint": func(d dirs) string { return d.checkpoint },
		"work":       dirs.work,
	} {
		for _, exits := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", exits by itself: ", exits), func(t *testing.T) {
				t.Parallel()

				r := setup(t)
				r.config.Bounds.OutputLimit = 1 << 20
				r.has(t, "/app", image{"train.py": "x"})

				place := dir(r.dirs(r.who(t)))
				box, ended := r.begin(t)
				box.Print(berth.Stdout, "acc=1\n")

				below := filepath.Join(place, "deep", "er")
				require.NoError(t, os.MkdirAll(below, 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(below, "model"), make([]byte, 2<<20), 0o600))

				if exits {
					box.Exit(0)
				}

				got := came(t, ended)
				require.Equal(t, berth.FailureDiskQuota, got.Kind)
				require.Contains(t, got.Message, "more than 1 MiB to /trial/out")
				require.Nil(t, got.Value)
				require.NoDirExists(t, below)
				require.NoDirExists(t, r.file(workName))
				require.NoFileExists(t, r.file("out/work/deep/er/model"))
				require.Equal(t, name != "work", fileIsThere(place))
			})
		}
	}
}

// The files are the evidence, until the verdict or its reason is safe: the disk
// that they fill may take neither.
func TestRun_FilesOverTheQuotaStayUntilTheVerdictIsSafe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.config.Bounds.OutputLimit = 1 << 20
		r.books.finishErrs = awayFor(1000)

		box, ended := r.begin(t)
		require.NoError(t, os.Mkdir(r.file(verdictName+".tmp"), 0o700)) // in the way
		require.NoError(t, os.Mkdir(r.file(recordName), 0o700))
		model := filepath.Join(r.file("out"), "model")
		require.NoError(t, os.WriteFile(model, make([]byte, 2<<20), 0o600))
		box.Exit(143)
		require.Equal(t, berth.KindUnavailable, berth.KindOf((<-ended).err))
		require.FileExists(t, model)

		r.books.finishErrs = nil

		got := came(t, r.start(t.Context(), r.order()))
		require.Equal(t, berth.FailureDiskQuota, got.Kind)
		require.NoFileExists(t, model)
	})
}

// The database and the data directory share the disk that the files fill: neither
// takes the verdict as long as the files are there.
func TestRun_FilesOverTheQuotaGoWhenTheDatabaseNeedsTheirRoom(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		limit int64 // bytes of files
		says  string
	}{
		"over the quota":        {1 << 20, "wrote more than 1 MiB"},
		"filled it before that": {100 << 20, `which filled the disk of host "a": it had 1 MiB free`},
	} {
		for _, dies := range []bool{false, true} {
			bubble(t, fmt.Sprint(name, ", the worker dies before the verdict is safe: ", dies), func(t *testing.T) {
				r := setup(t)
				free := r.hasSmallDisk()
				r.config.Bounds.OutputLimit = c.limit

				box := r.leave(t, r.order()) // the disk has room for the first record of it
				model := filepath.Join(mountOf(t, box.Launch, mountOut), "model")
				require.NoError(t, os.Mkdir(model, 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(model, "weights"), make([]byte, 21<<20), 0o600))
				free.Store(1 << 20)

				for _, name := range ours { // a full disk takes no new file, or none before the model has gone
					if name == verdictName && !dies {
						require.NoError(t, os.Symlink(model, r.file(name+".tmp")))
					} else {
						require.NoError(t, os.MkdirAll(r.file(name+".tmp"), 0o700))
					}
				}

				r.books.refuse = func() error {
					if _, err := os.Lstat(filepath.Join(model, "weights")); err == nil || dies {
						return errAway
					}

					return nil
				}

				ended := r.start(t.Context(), r.order())

				time.Sleep(2 * time.Second)
				box.Print(berth.Stderr, noSpaceLine)
				box.Exit(1) // unless it was stopped before

				got := await(t, ended)
				require.NoFileExists(t, filepath.Join(model, "weights"))

				if dies {
					require.Equal(t, berth.KindUnavailable, berth.KindOf(got.err))

					r.books.refuse = func() error { return nil }
					got = await(t, r.start(t.Context(), r.order()))
				}

				require.NoError(t, got.err)
				require.Equal(t, berth.FailureDiskQuota, got.outcome.Kind, got.outcome.Message)
				require.Contains(t, got.outcome.Message, c.says)
			})
		}
	}
}

func TestDirs_Larger(t *testing.T) {
	t.Parallel()

	outside := t.TempDir()
	plantFile(t, filepath.Join(outside, "large"), make([]byte, 2<<20))

	for name, c := range map[string]struct {
		plant  func(d dirs) error
		larger bool
	}{
		"a hole takes nothing": {func(d dirs) error {
			return errors.Join(os.WriteFile(filepath.Join(d.out, "sparse"), nil, 0o600), os.Truncate(filepath.Join(d.out, "sparse"), 10<<30))
		}, false},
		"many empty files take something": {func(d dirs) (err error) {
			for i := range 300 {
				err = errors.Join(err, os.WriteFile(filepath.Join(d.out, fmt.Sprint(i)), nil, 0o600))
			}

			return err
		}, true},
		"the shim's records count": {func(d dirs) error {
			return os.WriteFile(filepath.Join(d.shim, shimRecords), make([]byte, 2<<20), 0o600)
		}, true},
		"a directory that is no UTF-8 counts": {func(d dirs) error {
			return errors.Join(os.Mkdir(filepath.Join(d.out, "caf\xe9"), 0o700), os.WriteFile(filepath.Join(d.out, "caf\xe9", "big"), make([]byte, 2<<20), 0o600))
		}, true},
		"a link counts itself only": {func(d dirs) error {
			return errors.Join(os.Symlink(outside, filepath.Join(d.out, "out")), os.Symlink(filepath.Join(outside, "large"), filepath.Join(d.out, "file")))
		}, false},
	} {
		d := setup(t).newRun(t).dirs
		require.LessOrEqual(t, d.size(t.Context(), 1), int64(1), "not there yet")
		require.NoError(t, d.make(nil))
		require.NoError(t, c.plant(d))
		require.Equal(t, c.larger, d.size(t.Context(), 1<<20) > 1<<20, name)
		require.NoError(t, d.empty(true))
		require.FileExists(t, filepath.Join(outside, "large"), "what a link leads to is not ours to remove")
	}
}

func TestReadFile_IsNotKeptByALargeFile(t *testing.T) {
	t.Parallel()

	o, path := fileOutput(t)
	*o.file.left = 32 << 20
	appendTo(t, path, "{\"step\":1,\"metrics\":{\"a\":1}}\n")
	require.NoError(t, os.Truncate(path, 10<<40)) // ten terabytes of nothing

	o.file.read(readPerLook)
	require.EqualValues(t, readPerLook, o.file.at)
	require.Equal(t, []int64{1}, o.steps(t), "reads on, and ends")
	require.EqualValues(t, 32<<20, o.file.at)
	require.LessOrEqual(t, len(o.file.rest), longestLine)
	require.Equal(t, []string{"its metrics file is larger than 256 MiB and was read so far only"}, o.notes())

	for range 3 { // beginning it anew again and again does not help
		require.NoError(t, os.WriteFile(path, []byte("{\"step\":2,\"metrics\":{\"a\":1}}\n"), 0o600))
		require.Empty(t, o.steps(t))
	}
}

// What walks through the directories of one attempt may take, all attempts share.
func TestWalkPause(t *testing.T) {
	t.Parallel()

	r := setup(t)
	require.Equal(t, 4*time.Second, r.walkPause(20*time.Millisecond))

	for n := range 40 {
		_, yield, err := r.claim(t.Context(), fmt.Sprint(n))
		require.NoError(t, err)

		defer yield()
	}

	require.Equal(t, 160*time.Second, r.walkPause(20*time.Millisecond), "0.5 % of a core, as for one")
}

// The kernel's kill would end all neighbours of a client of MPS. So the worker ends one that
// holds what is reserved for it, and the kernel's limit is above that.
func TestRun_AClientOfMPSIsStoppedBeforeTheKernelDoes(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		class berth.DeviceClass
		holds int64
		exit  int // -1 = Berth stops it
		kind  berth.FailureKind
		wall  int64
	}{
		"at its reservation": {class: "NVIDIA H200 (MPS)", holds: 1 << 30, exit: -1, kind: berth.FailureHostOOM, wall: 2 << 30},
		"below it":           {class: "NVIDIA H200 (MPS)", holds: 1<<30 - 1, exit: 1, kind: berth.FailureUserError, wall: 2 << 30},
		"by time slices":     {class: "NVIDIA H200", holds: 1 << 30, exit: 1, kind: berth.FailureUserError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			r.books.says(func(who *berth.Assignee) {
				who.Attempt.DeviceID, who.Attempt.Class, who.Attempt.Demand.DeviceBytes = testGPU, c.class, 2<<30
			})
			r.config.MPSPipe = func(id string) (string, error) { return "/run/mps/" + id, nil }
			r.meter = func(berth.Container) (Meter, error) { return gauge{berth.MemorySample{WorkingSetBytes: c.holds}}, nil }

			box, ended := r.begin(t)
			require.Equal(t, c.wall, box.Launch.WallBytes)

			if c.exit >= 0 {
				box.Exit(c.exit)
			}

			got := came(t, ended)
			require.Equal(t, c.kind, got.Kind, got.Message)
			require.Equal(t, c.exit < 0, slices.Contains(r.docks.called(), "stop "+box.Container().ID))

			if c.exit < 0 {
				require.Contains(t, got.Message, "Berth stopped it before the kernel did")
			}
		})
	}
}
