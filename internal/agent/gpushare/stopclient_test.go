package gpushare

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// stopped is a Docker with one container, which records the calls.
type stopped struct {
	container berth.Container
	endsAfter time.Duration // SIGTERM; negative = it does not end by that
	did       []string
	at        []time.Duration // since the container was to stop
	began     time.Time
}

func (d *stopped) note(what string) {
	d.did, d.at = append(d.did, what), append(d.at, time.Since(d.began))
}

func (d *stopped) Inspect(context.Context, string) (berth.Container, error) {
	c := d.container
	if n := len(d.did); n > 0 && d.did[n-1] == "term" && d.endsAfter >= 0 && time.Since(d.began)-d.at[n-1] >= d.endsAfter {
		c.State = berth.ContainerExited
	}

	return c, nil
}

func (d *stopped) Signal(_ context.Context, _ string, kill bool) error {
	if kill {
		d.note("kill")
	} else {
		d.note("term")
	}

	return nil
}

func (d *stopped) Pause(context.Context, string) error { d.note("pause"); return nil }

func (d *stopped) Stop(_ context.Context, _ string, grace time.Duration) error {
	d.note("docker stop " + grace.String())

	return nil
}

// handlers is a /proc in which these processes have a handler for SIGTERM, and 50, the init
// process, has child 60.
func handlers(pids ...string) fstest.MapFS {
	files := fstest.MapFS{"50/task/50/children": {Data: []byte("60 ")}}
	for _, pid := range []string{"60", "100", "107"} {
		files[pid+"/status"] = &fstest.MapFile{Data: []byte("Name:\tpython3\nSigIgn:\t0000000001001000\nSigCgt:\t0000000000000002\n")}
	}

	for _, pid := range pids {
		files[pid+"/status"] = &fstest.MapFile{Data: []byte("Name:\tpython3\nSigCgt:\t0000000000004002\n")}
	}

	return files
}

// No client of MPS is killed while its kernels may run, if others would die of that.
func TestSharer_StopContainer(t *testing.T) {
	t.Parallel()

	own, neighbour := []int{100, 107}, 200
	both := append([]int{neighbour}, own...)
	client := berth.Container{ID: "one", State: berth.ContainerRunning, PID: 50, DeviceID: "GPU-a"}
	frozen := []string{"pause", "kill 100", "kill 107", "kill"}
	plain := []string{"docker stop 30s"}

	for name, c := range map[string]struct {
		clients   []int
		broken    bool     // the daemon does not answer
		handlers  []string // by process
		endsAfter time.Duration
		change    func(c *berth.Container)
		did       []string
		took      time.Duration
	}{
		"no handler":          {clients: both, handlers: []string{"60", "100"}, did: frozen, took: 20 * time.Second},
		"a shell without":     {clients: both, handlers: []string{"100", "107"}, did: frozen, took: 20 * time.Second},
		"a handler that ends": {clients: both, handlers: []string{"60", "100", "107"}, endsAfter: 3 * time.Second, did: []string{"term"}, took: 3 * time.Second},
		"one that does not":   {clients: both, handlers: []string{"60", "100", "107"}, endsAfter: -1, did: append([]string{"term"}, frozen...), took: 50 * time.Second},
		"no neighbour":        {clients: own, handlers: []string{"60", "100", "107"}, endsAfter: -1, did: []string{"term", "kill"}, took: 30 * time.Second},
		"alone, no handler":   {clients: own, did: []string{"kill"}},
		"no client yet":       {clients: []int{neighbour}, did: plain},
		"a silent daemon":     {broken: true, handlers: []string{"60"}, did: []string{"pause", "kill"}, took: 20 * time.Second},
		"an ended container":  {clients: both, change: func(c *berth.Container) { c.State = berth.ContainerExited }, did: plain},
		"a trial on cores":    {clients: both, change: func(c *berth.Container) { c.DeviceID = "" }, did: plain},
		"a GPU by time slice": {clients: both, change: func(c *berth.Container) { c.DeviceID = "GPU-b" }, did: plain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeDaemons{clients: c.clients}
				if c.broken {
					f.unlisted = errors.New("no answer")
				}

				s := sharedBy(f)
				s.system, s.drain = handlers(c.handlers...), 20*time.Second

				docker := &stopped{container: client, endsAfter: c.endsAfter, began: time.Now()}
				s.kill = func(pid int) error { docker.note("kill " + strconv.Itoa(pid)); return nil }

				if c.change != nil {
					c.change(&docker.container)
				}

				require.NoError(t, s.stopContainer(t.Context(), docker, "one", 30*time.Second))
				require.Equal(t, c.did, docker.did)
				require.Equal(t, c.took, time.Since(docker.began))
			})
		})
	}
}

// A worker that leaves while a container drains kills nothing, and says that it did not stop.
func TestSharer_StopContainerCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := sharedBy(&fakeDaemons{clients: []int{100, 200}})
		s.system, s.drain = handlers(), 20*time.Second

		docker := &stopped{container: berth.Container{ID: "one", State: berth.ContainerRunning, PID: 50, DeviceID: "GPU-a"}, began: time.Now()}

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()

		require.Equal(t, berth.KindUnavailable, berth.KindOf(s.stopContainer(ctx, docker, "one", time.Second)))
		require.Equal(t, []string{"pause"}, docker.did)
	})
}
