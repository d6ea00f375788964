//go:build integration

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/pgtest"
)

const (
	chaosDefault = 60 * time.Second
	// chaosQuiet is how long everything may take to end once the faults are over.
	chaosQuiet = 4 * time.Minute
	// chaosLook is how often the invariants are looked at while it lasts.
	chaosLook = 300 * time.Millisecond
)

// TestChaos runs random sweeps while random parts die, hang and lose sight of
// each other, and then looks at the invariants of DESIGN.md section 9.
// CHAOS_SEED repeats a schedule of faults; CHAOS_DURATION, such as 30m, makes
// it long. A failure prints the seed and what happened when.
func TestChaos(t *testing.T) { //nolint:paralleltest // its schedule wants the machine to itself
	seed := rand.Uint64()
	if text := os.Getenv("CHAOS_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "CHAOS_SEED must be a whole number")
	}

	lasts := chaosDefault
	if text := os.Getenv("CHAOS_DURATION"); text != "" {
		var err error
		lasts, err = time.ParseDuration(text)
		require.NoError(t, err, "CHAOS_DURATION must be a time such as 90s or 30m")
	}

	x := &chaos{
		cluster: startCluster(t, 2, "1GiB"), seed: seed, random: rand.New(rand.NewPCG(seed, seed)),
		began: time.Now(), injected: map[string]int{}, sweeps: map[string]bool{}, removed: map[string]bool{}, seen: map[string]string{},
	}

	defer x.report()

	ctx, endWatch := context.WithCancel(t.Context())
	watched := make(chan struct{})

	go func() {
		defer close(watched)
		x.watch(ctx)
	}()

	x.storm(lasts)
	x.calm()

	endWatch()
	<-watched
	require.Positive(t, x.looks, "nobody looked")
	require.Empty(t, x.broken, "invariants were broken (CHAOS_SEED=%d)", seed)
}

// chaos is one run. Only the storm draws random numbers, so that a seed
// repeats a schedule.
type chaos struct {
	*cluster

	seed   uint64
	random *rand.Rand
	began  time.Time
	due    []repair
	sweeps map[string]bool // acknowledged; true = a person ended it early

	mu       sync.Mutex
	timeline []string
	injected map[string]int
	removed  map[string]bool   // containers that we removed, by name
	seen     map[string]string // container ids, by name
	broken   []string
	looks    int
}

// repair ends a fault.
type repair struct {
	at   time.Time
	what string
	do   func()
}

// note writes a line of the timeline.
func (x *chaos) note(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()

	x.timeline = append(x.timeline, fmt.Sprintf("%7.2f s  ", time.Since(x.began).Seconds())+fmt.Sprintf(format, args...))
}

// fault notes and counts a fault, and plans its repair.
func (x *chaos) fault(kind, whom string, lasts time.Duration, mend func()) {
	x.note("%s %s for %s", kind, whom, lasts.Round(10*time.Millisecond))
	x.injected[kind]++

	if mend != nil {
		x.due = append(x.due, repair{time.Now().Add(lasts), kind + " of " + whom + " ends", mend})
	}
}

// between draws a time.
func (x *chaos) between(from, to time.Duration) time.Duration {
	return from + time.Duration(x.random.Int64N(int64(to-from)))
}

// storm injects faults and starts sweeps until time is over.
func (x *chaos) storm(lasts time.Duration) {
	x.submit()

	for end := time.Now().Add(lasts); time.Now().Before(end); {
		x.mend(false)
		x.act()

		select {
		case <-time.After(x.between(100*time.Millisecond, 1500*time.Millisecond)):
		case <-x.t.Context().Done():
			return
		}
	}
}

// mend ends the faults whose time has come, or all.
func (x *chaos) mend(all bool) {
	for i := 0; i < len(x.due); i++ {
		if !all && time.Now().Before(x.due[i].at) {
			continue
		}

		x.note("%s", x.due[i].what)
		x.due[i].do()
		x.due = slices.Delete(x.due, i, i+1)
		i--
	}
}

// act does one thing. The weights are by how often such things happen, and by
// what they cost: a stopped database stops everything.
func (x *chaos) act() {
	h := x.hosts[x.random.IntN(len(x.hosts))]
	draw := x.random.IntN(100)

	switch {
	case draw < 22:
		x.submit()
	case draw < 32:
		x.steer()
	case draw < 46:
		x.endWorker(h, "kill -9 of worker", syscall.SIGKILL)
	case draw < 54:
		x.endWorker(h, "SIGTERM of worker", syscall.SIGTERM)
	case draw < 61:
		x.freezeWorker(h)
	case draw < 68:
		x.partition(h, "cut from PostgreSQL", true, false)
	case draw < 75:
		x.partition(h, "cut from Temporal", false, true)
	case draw < 79:
		x.partition(h, "cut from both", true, true)
	case draw < 85:
		x.killServer()
	case draw < 89:
		x.note("crash of PostgreSQL")
		x.injected["crash of PostgreSQL"]++
		x.crashPostgres()
	case draw < 93:
		x.killTemporal()
		x.fault("kill -9", "Temporal", x.between(0, 3*time.Second), x.startTemporal)
	case draw < 97:
		x.hitContainer("docker kill", "kill")
	default:
		x.hitContainer("docker rm --force", "rm", "--force")
	}
}

// up reports whether a worker runs and is not being broken already.
func (h *host) up() bool {
	return h.worker != nil && !h.away
}

func (x *chaos) endWorker(h *host, kind string, signal syscall.Signal) {
	if !h.up() {
		return
	}

	h.away = true

	stop(h.worker, signal)
	x.fault(kind, h.name, x.between(0, 4*time.Second), func() {
		h.away = false
		x.startHost(h)
	})
}

// freezeWorker stops a worker for longer than it may be silent, or shorter.
func (x *chaos) freezeWorker(h *host) {
	if !h.up() {
		return
	}

	h.away = true
	_ = h.worker.Process.Signal(syscall.SIGSTOP)

	x.fault("SIGSTOP of worker", h.name, x.between(time.Second, 3*fastHeartbeat), func() {
		h.away = false
		_ = h.worker.Process.Signal(syscall.SIGCONT)
	})
}

func (x *chaos) partition(h *host, kind string, fromPostgres, fromTemporal bool) {
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

	x.fault(kind, h.name, x.between(500*time.Millisecond, 2*fastHost), func() {
		h.cut = false
		x.heal(h.postgres)
		x.heal(h.temporal)
	})
}

func (x *chaos) killServer() {
	if x.server == nil {
		return
	}

	stop(x.server, syscall.SIGKILL)
	x.server = nil
	x.fault("kill -9", "server", x.between(0, 3*time.Second), x.startServer)
}

// hitContainer does something to a container that only a person would do.
func (x *chaos) hitContainer(kind string, args ...string) {
	all := x.running()
	if len(all) == 0 {
		return
	}

	one := all[x.random.IntN(len(all))]

	x.mu.Lock()
	x.removed[one.name] = true
	x.mu.Unlock()

	_ = exec.Command("docker", append(args, one.id)...).Run() //nolint:noctx // it may have ended
	x.fault(kind, one.name, 0, nil)
}

// jobs are what the sweeps of a storm run: each its command, its parameters
// and what it asks for.
var jobs = []string{
	"command: [/busy, train, '{{ms}}', '0.5', '8']\nresources: {memory: 64MiB, cpus: 0.5}",
	"command: [/busy, train, '{{ms}}', '0.5', '8']\nresources: {cpus: 0.5, memory: 32MiB}\nprobe: {mode: full}",
	"command: [/busy, train, '{{ms}}', '0.5', '90']\nresources: {memory: 64MiB, cpus: 0.5}", // the kernel kills it first
	"command: [/busy, exit, '3', '{{ms}}']\nresources: {memory: 64MiB, cpus: 0.5}",          // its own fault
	"command: [/busy, exit, '0', '{{ms}}']\nresources: {memory: 64MiB, cpus: 0.5}",          // without a result
	"command: [/busy, ignore, '{{ms}}']\nresources: {memory: 64MiB, cpus: 0.5}\nlimits: {max_trial_duration: 4s}",
}

// submit posts a sweep until it is acknowledged: with one Idempotency-Key, so
// that a lost answer makes no second one.
func (x *chaos) submit() {
	job := jobs[min(x.random.IntN(2*len(jobs)), len(jobs)-1)%len(jobs)]
	if x.random.IntN(3) > 0 {
		job = jobs[0]
	}

	times := make([]string, 2+x.random.IntN(7))
	for i := range times {
		times[i] = strconv.Itoa(200 + 10*i + x.random.IntN(3000)/10*10)
	}

	slices.Sort(times)
	times = slices.Compact(times)

	file := fmt.Sprintf("name: chaos\nimage: berth-test/busy:1\nparameters: [{name: ms, values: [%s]}]\n%s\n"+
		"search: {algorithm: grid}\nobjective: {metric: val}\nmetrics: {source: stdout}\n", strings.Join(times, ", "), job)
	if !strings.Contains(job, "probe:") {
		file += "probe: {mode: 'off'}\n"
	}

	id := x.post(file, 2)
	if id == "" {
		x.note("a sweep was not accepted")

		return
	}

	x.sweeps[id] = false
	x.note("sweep %s of %d trials: %s", id[:8], len(times), strings.SplitN(job, "\n", 2)[0])
}

// post returns the sweep's id, or nothing when the server does not answer.
func (x *chaos) post(file string, tries int) string {
	key := uuid.NewString()

	for range tries {
		ctx, cancel := context.WithTimeout(x.t.Context(), 3*time.Second)
		answer, err := x.api.CreateSweepWithBodyWithResponse(ctx, &client.CreateSweepParams{IdempotencyKey: key}, "application/yaml", strings.NewReader(file))

		cancel()

		if err != nil {
			continue
		}

		switch answer.StatusCode() {
		case http.StatusCreated:
			return answer.JSON201.ID
		case http.StatusOK:
			return answer.JSON200.ID
		case http.StatusUnprocessableEntity, http.StatusBadRequest:
			require.NotContains(x.t, string(answer.Body), "E_", "the sweep file of a storm is wrong")
		}
	}

	return ""
}

// steer does to a sweep what a person may.
func (x *chaos) steer() {
	ids := slices.Sorted(maps.Keys(x.sweeps))
	if len(ids) == 0 {
		return
	}

	id, draw := ids[x.random.IntN(len(ids))], x.random.IntN(6)
	ctx, cancel := context.WithTimeout(x.t.Context(), 3*time.Second)

	defer cancel()

	var (
		what string
		err  error
	)

	switch draw {
	case 0, 1:
		what = "pause"
		_, err = x.api.PauseSweepWithResponse(ctx, id)
	case 2, 3:
		what = "resume"
		_, err = x.api.ResumeSweepWithResponse(ctx, id)
	case 4:
		what = "stop"
		_, err = x.api.StopSweepWithResponse(ctx, id)
		x.sweeps[id] = true
	default:
		what = "cancel"
		_, err = x.api.CancelSweepWithResponse(ctx, id)
		x.sweeps[id] = true
	}

	x.note("%s of sweep %s: %v", what, id[:8], err)
}

// calm ends all faults and waits until everything has ended and is tidy.
func (x *chaos) calm() {
	x.mend(true)
	x.note("calm")

	var left string

	ok := waitFor(chaosQuiet, func() bool {
		left = x.unfinished()

		return left == ""
	})
	if !ok {
		x.breaks("I4: still open after %s: %s", chaosQuiet, left)

		return
	}

	// Two periods of the reconciler, its grace, and what two rounds take.
	var broken []string

	waitFor(2*fastReconcile+fastGrace+10*time.Second, func() bool {
		broken = x.ledger(true)
		for _, c := range x.containers() {
			broken = append(broken, "I5 no container is left: "+c.name+" is "+c.state)
		}

		return len(broken) == 0
	})

	for _, text := range broken {
		x.breaks("%s", text)
	}
}

// unfinished says which sweeps are still open. Paused ones are resumed.
func (x *chaos) unfinished() string {
	var left []string

	for _, id := range slices.Sorted(maps.Keys(x.sweeps)) {
		answer, err := x.api.GetSweepWithResponse(x.t.Context(), id)
		if err != nil || answer.JSON200 == nil {
			if answer != nil && answer.StatusCode() == http.StatusNotFound {
				x.breaks("I7: sweep %s was acknowledged and is gone", id)
			}

			left = append(left, id[:8]+" does not answer")

			continue
		}

		if answer.JSON200.State == client.SweepStatePaused {
			_, _ = x.api.ResumeSweepWithResponse(x.t.Context(), id) // asked again next time
		}

		if answer.JSON200.FinishedAt == nil {
			left = append(left, fmt.Sprintf("%s is %s", id[:8], answer.JSON200.State))
		}
	}

	return strings.Join(left, ", ")
}

// waitFor polls until the condition holds or patience is over.
func waitFor(patience time.Duration, condition func() bool) bool {
	for deadline := time.Now().Add(patience); ; {
		if condition() {
			return true
		}

		if time.Now().After(deadline) {
			return false
		}

		<-time.After(chaosLook)
	}
}

// breaks notes that an invariant is broken, once.
func (x *chaos) breaks(format string, args ...any) {
	text := fmt.Sprintf(format, args...)

	x.mu.Lock()
	known := slices.Contains(x.broken, text)

	if !known {
		x.broken = append(x.broken, text)
	}
	x.mu.Unlock()

	if !known {
		x.note("BROKEN %s", text)
	}
}

// watch looks at the invariants that hold at every moment, until ctx ends.
func (x *chaos) watch(ctx context.Context) {
	last := map[string]int64{}

	for ctx.Err() == nil {
		x.look(ctx, last)

		select {
		case <-time.After(chaosLook):
		case <-ctx.Done():
		}
	}
}

func (x *chaos) look(ctx context.Context, last map[string]int64) {
	live := x.running()
	attempts := make([]string, len(live))

	x.mu.Lock()
	for i, c := range live {
		attempts[i] = strings.TrimPrefix(c.name, "berth-"+x.instance+"-")

		if before, ok := x.seen[c.name]; ok && before != c.id && !x.removed[c.name] {
			x.broken = append(x.broken, "R1: attempt "+attempts[i]+" had two containers")
		}

		x.seen[c.name] = c.id
	}
	x.mu.Unlock()

	inspector, err := pgtest.Inspect(ctx, x.postgres.URL)
	if err != nil {
		return // the database is down
	}
	defer inspector.Close(context.WithoutCancel(ctx))

	broken, err := inspector.Broken(ctx, false)
	if err != nil {
		return
	}

	unleased, err := inspector.Unleased(ctx, attempts)
	if err != nil {
		return
	}

	counters, err := inspector.Counters(ctx)
	if err != nil {
		return
	}

	for _, text := range broken {
		x.breaks("%s", text)
	}

	for _, attempt := range unleased { // released while it was listed, unless it still runs
		if x.lives("berth-" + x.instance + "-" + attempt) {
			x.breaks("I2: the container of attempt %s runs without a lease", attempt)
		}
	}

	for name, value := range counters {
		if value < last[name] {
			x.breaks("I6: %s went back from %d to %d", name, last[name], value)
		}

		last[name] = value
	}

	x.looks++
}

// lives asks for a container's own state: in the list, one that has exited is
// running until Docker has written that down.
func (x *chaos) lives(name string) bool {
	out, err := exec.Command("docker", "inspect", "--format", "{{.State.Running}}", name).Output() //nolint:noctx // answers at once

	return err == nil && strings.TrimSpace(string(out)) == "true"
}

// ledger returns what is broken in the ledger now.
func (x *chaos) ledger(ended bool) []string {
	inspector, err := pgtest.Inspect(x.t.Context(), x.postgres.URL)
	if err != nil {
		return []string{err.Error()}
	}
	defer inspector.Close(context.WithoutCancel(x.t.Context()))

	broken, err := inspector.Broken(x.t.Context(), ended)
	if err != nil {
		return []string{err.Error()}
	}

	return broken
}

// report prints the figures, and after a failure what happened when.
func (x *chaos) report() {
	trials := 0

	for id := range x.sweeps {
		if answer, err := x.api.GetSweepWithResponse(context.WithoutCancel(x.t.Context()), id); err == nil && answer.JSON200 != nil {
			trials += answer.JSON200.Counts.Total
		}
	}

	x.mu.Lock()
	defer x.mu.Unlock()

	faults := make([]string, 0, len(x.injected))
	for _, kind := range slices.Sorted(maps.Keys(x.injected)) {
		faults = append(faults, fmt.Sprintf("%d %s", x.injected[kind], kind))
	}

	x.t.Logf("seed %d, %s: %d sweeps, %d trials, %d containers seen, invariants looked at %d times; faults: %s",
		x.seed, time.Since(x.began).Round(time.Second), len(x.sweeps), trials, len(x.seen), x.looks, strings.Join(faults, ", "))

	if x.t.Failed() || testing.Verbose() {
		x.t.Logf("what happened when:\n%s", strings.Join(x.timeline, "\n"))
	}
}
