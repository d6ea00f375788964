//go:build integration && nightly

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/agent/simgpu"
)

// patienceOfCaller is how long a caller waits for a server that may have been killed.
const patienceOfCaller = 3 * time.Second

// chaosHosts are the flags of the hosts, of unequal sizes.
var chaosHosts = [][]string{
	{"--memory", "1GiB", "--fake-gpus", "2x8GiB"},
	{"--memory", "768MiB", "--fake-gpus", "1x8GiB"},
	{"--memory", "512MiB", "--cpus", "1"},
}

// chaosCards are how many GPUs the hosts have.
var chaosCards = []int{2, 1, 0}

// event is one drawn event with its parameters. Pick chooses among the targets that
// exist when it happens.
type event struct {
	gap   time.Duration // to the event before
	kind  kind
	host  int           // index of a host
	lasts time.Duration // of a fault
	pick  uint64
	file  string // of a submission
}

// kind is one kind of event, how often it is drawn among the others, and the bounds
// of how long its fault lasts.
type kind struct {
	name     string
	weight   int
	from, to time.Duration
	do       func(*chaos, event)
}

// kinds are weighted by frequency and by cost: a stopped database stops
// everything.
var kinds = []kind{
	{"submit", 32, 0, 0, (*chaos).submitSweep},
	{"pause", 6, 0, 0, (*chaos).steer},
	{"resume", 4, 0, 0, (*chaos).steer},
	{"stop", 2, 0, 0, (*chaos).steer},
	{"cancel", 3, 0, 0, (*chaos).steer},
	{"forget", 5, 0, 0, (*chaos).forgetStage},
	{"delete", 3, 0, 0, (*chaos).deleteSweep},
	{"kill -9 of worker", 10, 0, 4 * time.Second, endWorker(syscall.SIGKILL)},
	{"SIGTERM of worker", 6, 0, 4 * time.Second, endWorker(syscall.SIGTERM)},
	{"SIGSTOP of worker", 5, time.Second, 15 * time.Second, (*chaos).freezeWorker},
	{"cut from PostgreSQL", 4, 500 * time.Millisecond, 16 * time.Second, cutHost(true, false)},
	{"cut from Temporal", 4, 500 * time.Millisecond, 16 * time.Second, cutHost(false, true)},
	{"cut from both", 3, 500 * time.Millisecond, 16 * time.Second, cutHost(true, true)},
	{"cut from Docker", 3, 500 * time.Millisecond, 5 * time.Second, (*chaos).spoilDocker},
	{"kill -9 of server", 5, 0, 3 * time.Second, (*chaos).killServer},
	{"crash of PostgreSQL", 3, 0, 0, func(x *chaos, e event) { x.fault(e, "", nil); x.crashPostgres() }},
	{"kill -9 of Temporal", 3, 0, 3 * time.Second, (*chaos).killTemporalFor},
	{"XID of a card", 2, time.Second, 6 * time.Second, spoilCard(simgpu.Fault{XID: 79})},
	{"lost memory of a card", 2, time.Second, 6 * time.Second, spoilCard(simgpu.Fault{ECC: true})},
	{"loss of a card", 2, time.Second, 6 * time.Second, spoilCard(simgpu.Fault{Lose: true})},
	{"hang of a card's driver", 2, time.Second, 12 * time.Second, spoilCard(simgpu.Fault{Hang: true})},
	{"loss of the store", 3, time.Second, 8 * time.Second, (*chaos).hideStore},
	{"docker kill", 3, 0, 0, hitContainer("kill")},
	{"docker rm --force", 2, 0, 0, hitContainer("rm", "--force")},
}

// Events come as far apart as this.
const (
	eventGapMin = 200 * time.Millisecond
	eventGapMax = 1800 * time.Millisecond
)

// draw draws the next event. The draw depends on the seed alone.
func (x *chaos) draw() event {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}

	e := event{gap: between(x.random, eventGapMin, eventGapMax), host: x.random.IntN(len(chaosHosts)), pick: x.random.Uint64()}

	at := x.random.IntN(total)
	for _, e.kind = range kinds {
		if at -= e.kind.weight; at < 0 {
			break
		}
	}

	e.lasts = between(x.random, e.kind.from, e.kind.to)

	if e.kind.name == "submit" {
		e.file = drawSweep(x.random, x.drawn)
		x.drawn++
	}

	return e
}

// between draws a time, including the bounds.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)+1))
}

// startAll runs both servers and the hosts.
func (x *chaos) startAll() {
	x.guard("server", x.server)
	x.startSecond()

	for _, flags := range chaosHosts {
		h := x.addHost(append(flags, "--artifacts", x.store())...)
		x.daemons[h.name] = x.proxyDocker(h)
		h.env = []string{"DOCKER_HOST=unix://" + x.daemons[h.name].path}
		x.startWorkerOf(h)
	}

	x.awaitHosts()
	x.t.Cleanup(func() { stop(x.second, syscall.SIGTERM) })
}

func (x *chaos) startWorkerOf(h *host) {
	h.away = false
	x.startHost(h)
	x.guard(h.name, h.worker)
}

func (x *chaos) startSecond() {
	x.second = x.spawn("server", "server", "--listen", "127.0.0.1:"+strconv.Itoa(freePort(x.t)),
		"--postgres-url", x.postgres.URL, "--temporal-address", x.temporal.Address)
	x.guard("second server", x.second)
}

// guard notes when a process ends that no fault ended.
func (x *chaos) guard(name string, cmd *exec.Cmd) {
	c := childOf(cmd)

	go func() {
		if <-c.ended; c.alone {
			x.breaks("%s ended by itself: %s", name, cmd.ProcessState)
		}
	}()
}

// fault notes and counts an event, and plans the repair of a fault.
func (x *chaos) fault(e event, whom string, mend func()) {
	what := strings.TrimSpace(e.kind.name + " " + whom)
	x.note("%s for %s", what, e.lasts.Round(10*time.Millisecond))

	x.mu.Lock()
	x.injected[e.kind.name]++
	x.mu.Unlock()

	if mend != nil {
		x.due = append(x.due, repair{time.Now().Add(e.lasts), what + " ends", mend})
	}
}

// submitSweep posts a sweep file once. It does not repeat a refused or unanswered
// request.
func (x *chaos) submitSweep(e event) {
	ctx, cancel := context.WithTimeout(x.t.Context(), patienceOfCaller)
	defer cancel()

	answer, err := x.api.CreateSweepWithBodyWithResponse(ctx, &client.CreateSweepParams{IdempotencyKey: fmt.Sprint(x.began.UnixNano(), x.drawn)},
		"application/yaml", strings.NewReader(e.file))

	switch {
	case err != nil:
		x.note("a sweep was not accepted: %v", err)
	case answer.JSON201 != nil:
		x.fault(e, answer.JSON201.ID, nil)
		x.sweeps = append(x.sweeps, answer.JSON201.ID)
	case answer.StatusCode() == http.StatusServiceUnavailable, answer.StatusCode() == http.StatusTooManyRequests,
		answer.StatusCode() == http.StatusUnprocessableEntity && strings.Contains(e.file, tooLarge):
		x.note("a sweep was refused: %s", answer.Body)
	default:
		x.breaks("submitting was answered with %d: %s\n%s", answer.StatusCode(), answer.Body, e.file)
	}
}

// steer sends the event's command to a sweep.
func (x *chaos) steer(e event) {
	if len(x.sweeps) > 0 {
		id := x.sweeps[e.pick%uint64(len(x.sweeps))]
		x.fault(e, id, nil)
		x.ask(id, e.kind.name)
	}
}

// forgetStage has Berth forget the output of a stage. It is refused while a trial needs it.
func (x *chaos) forgetStage(e event) {
	ctx, cancel := context.WithTimeout(x.t.Context(), patienceOfCaller)
	defer cancel()

	stages, err := x.api.ListStagesWithResponse(ctx, &client.ListStagesParams{})
	if err != nil {
		x.note("listing stages: %v", err)

		return
	}

	if stages.JSON200 == nil || len(stages.JSON200.Data) == 0 {
		x.note("no stage to forget: %s", stages.Body)

		return
	}

	one := stages.JSON200.Data[e.pick%uint64(len(stages.JSON200.Data))]

	answer, err := x.api.ForgetStageWithResponse(ctx, one.Key)
	if err != nil {
		x.note("forgetting stage %s: %v", one.Key, err)

		return
	}

	x.fault(e, fmt.Sprintf("%s %s, %s,", one.Stage, one.Key, answer.Status()), nil)
}

// deleteSweep deletes a sweep. It is refused while the sweep goes on, or another one reads its outputs.
func (x *chaos) deleteSweep(e event) {
	if len(x.sweeps) == 0 {
		return
	}

	ctx, cancel := context.WithTimeout(x.t.Context(), patienceOfCaller)
	defer cancel()

	id := x.sweeps[e.pick%uint64(len(x.sweeps))]

	x.mu.Lock()
	before := slices.Clone(x.deleted)
	x.deleted = append(x.deleted, id) // also if no answer comes
	x.mu.Unlock()

	answer, err := x.api.DeleteSweepWithResponse(ctx, id)
	if err != nil {
		x.note("deleting sweep %s: %v", id, err)

		return
	}

	if answer.StatusCode() == http.StatusConflict {
		x.mu.Lock()
		x.deleted = before
		x.mu.Unlock()
	}

	x.fault(e, id+", "+answer.Status()+",", nil)
}

// ask asks the server to do something to a sweep, as a person does.
func (x *chaos) ask(id, what string) {
	ctx, cancel := context.WithTimeout(x.t.Context(), patienceOfCaller)
	defer cancel()

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url+"/api/v1/sweeps/"+id+"/"+what, http.NoBody)
	require.NoError(x.t, err)

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		x.note("%s of sweep %s: %v", what, id, err)

		return
	}

	x.note("%s of sweep %s: %s", what, id, response.Status)
	require.NoError(x.t, response.Body.Close())
}

func endWorker(signal syscall.Signal) func(*chaos, event) {
	return func(x *chaos, e event) {
		h := x.hosts[e.host]
		if h.away {
			return
		}

		h.away = true
		stop(h.worker, signal)
		x.fault(e, h.name, func() { x.startWorkerOf(h) })
	}
}

func (x *chaos) freezeWorker(e event) {
	h := x.hosts[e.host]
	if h.away {
		return
	}

	h.away = true
	_ = h.worker.Process.Signal(syscall.SIGSTOP)

	x.fault(e, h.name, func() {
		h.away = false
		_ = h.worker.Process.Signal(syscall.SIGCONT)
	})
}

func cutHost(fromPostgres, fromTemporal bool) func(*chaos, event) {
	return func(x *chaos, e event) {
		h := x.hosts[e.host]
		if h.cut {
			return
		}

		h.cut = true

		if fromPostgres {
			x.cut(h.postgres)
		}

		if fromTemporal {
			x.cut(h.temporal)
		}

		x.fault(e, h.name, func() {
			h.cut = false
			x.heal(h.postgres)
			x.heal(h.temporal)
		})
	}
}

func (x *chaos) store() string { return filepath.Join(x.dir, "store") }

// hideStore takes the store of artifacts away, as when its disk is not mounted.
func (x *chaos) hideStore(e event) {
	if os.Rename(x.store(), x.store()+".away") == nil {
		x.fault(e, "", func() { // a worker may have begun another one
			require.NoError(x.t, os.RemoveAll(x.store()))
			require.NoError(x.t, os.Rename(x.store()+".away", x.store()))
		})
	}
}

// spoilDocker has a host's Docker not answer, or lose its answers.
func (x *chaos) spoilDocker(e event) {
	h := x.hosts[e.host]
	if p := x.daemons[h.name]; p.mode.CompareAndSwap(dockerWell, []int32{dockerAway, dockerLossy}[e.pick%2]) {
		x.fault(e, h.name, func() { p.mode.Store(dockerWell) })
	}
}

// killServer kills one of the servers.
func (x *chaos) killServer(e event) {
	cmd, start := x.server, func() {
		x.startServer()
		x.guard("server", x.server)
	}
	if e.pick%2 == 1 {
		cmd, start = x.second, x.startSecond
	}

	if lives(cmd) {
		stop(cmd, syscall.SIGKILL)
		x.fault(e, "", start)
	}
}

func (x *chaos) killTemporalFor(e event) {
	if x.temporalDown {
		return
	}

	x.temporalDown = true
	x.killTemporal()
	x.fault(e, "", func() {
		x.startTemporal()
		x.temporalDown = false
	})
}

// spoilCard does something to a GPU of a host, until its worker starts again, as when
// a person has reset the GPU.
func spoilCard(what simgpu.Fault) func(*chaos, event) {
	return func(x *chaos, e event) {
		h, cards := x.hosts[e.host], chaosCards[e.host]
		if h.away || cards == 0 {
			return
		}

		number := int(e.pick % uint64(cards)) //nolint:gosec // G115: of a few
		if err := simgpu.Inject(filepath.Join(h.dir, "gpus"), number, what); err != nil {
			x.note("%s of %s is not possible: %v", e.kind.name, h.name, err)

			return
		}

		x.fault(e, h.name, func() { x.restartWorker(h) })
	}
}

// restartWorker restarts a worker, also a frozen one. A dead one starts when its own
// fault ends.
func (x *chaos) restartWorker(h *host) {
	if lives(h.worker) {
		stop(h.worker, syscall.SIGKILL)
		x.startWorkerOf(h)
	}
}

// hitContainer does something to a container that only a person does.
func hitContainer(args ...string) func(*chaos, event) {
	return func(x *chaos, e event) {
		all := x.running()
		if len(all) == 0 {
			return
		}

		one := all[e.pick%uint64(len(all))]

		x.mu.Lock()
		x.removed[one.name] = true
		x.mu.Unlock()

		x.fault(e, one.name, nil)
		_ = x.docker(append(args, one.id)...).Run() // it may have ended
	}
}
