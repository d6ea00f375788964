//go:build integration

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflow/v1"

	"github.com/berthml/berth/workflows"
)

// inject does one fault.
func (x *chaos) inject(e event) {
	h := x.hosts[e.Host%len(x.hosts)]

	switch e.Kind {
	case "kill -9 of worker":
		x.endWorker(h, e, syscall.SIGKILL, binary)
	case "SIGTERM of worker":
		x.endWorker(h, e, syscall.SIGTERM, binary)
	case "other binary on worker":
		x.otherBinary(h, e)
	case "SIGSTOP of worker":
		x.freezeWorker(h, e)
	case "cut from PostgreSQL":
		x.partition(h, e, true, false)
	case "cut from Temporal":
		x.partition(h, e, false, true)
	case "cut from both":
		x.partition(h, e, true, true)
	case "cut from Docker":
		x.spoilDocker(h, e, []int32{dockerAway, dockerLossy}[e.Pick%2])
	case "kill -9 of server":
		x.killServer(e)
	case "crash of PostgreSQL":
		x.broke("PostgreSQL")
		x.fault(e.Kind, "", 0, nil)
		x.crashPostgres()
		x.recovered("PostgreSQL")
	case "kill -9 of Temporal":
		x.killOfTemporal(e)
	case xidOfCard, eccOfCard, lossOfCard, hangOfCard:
		x.spoilCard(h, e)
	case "docker kill":
		x.hitContainer(e, "kill")
	case "docker rm --force":
		x.hitContainer(e, "rm", "--force")
	default:
		x.t.Fatalf("nothing plays %q", e.Kind)
	}
}

// broke and recovered say since when a part is healthy, for the canaries.
func (x *chaos) broke(part string) {
	x.mu.Lock()
	delete(x.healthy, part)
	x.mu.Unlock()
}

func (x *chaos) recovered(part string) {
	x.mu.Lock()
	x.healthy[part] = time.Now()
	x.mu.Unlock()
}

// hostRecovered says so unless something else is wrong with the host.
func (x *chaos) hostRecovered(h *host) {
	if h.up() && !h.cut && x.docker[h.name].mode.Load() == dockerWell {
		x.recovered(h.name)
	}
}

// up reports whether a worker runs and is not being broken already.
func (h *host) up() bool {
	return h.worker != nil && !h.away
}

// startWorker starts a host's worker, which talks to Docker through its proxy.
func (x *chaos) startWorker(h *host, program string) {
	x.mu.Lock()
	x.awaited[h.name] = 1 + strings.Count(x.output(h.name), workerServes)
	x.mu.Unlock()

	cmd := exec.Command(program, x.workerArgs(h)...) //nolint:noctx // stopped by clean
	cmd.Env = append(os.Environ(), "DOCKER_HOST=unix://"+x.docker[h.name].path)
	h.worker = launch(x.t, cmd, filepath.Join(x.dir, h.name+".log"), os.O_APPEND)
	x.hostRecovered(h)

	if program != x.other { // that one is not tested
		x.guard(h.name, h.worker)
	}
}

// guard notes when a process ends that no fault ended (O5).
func (x *chaos) guard(name string, cmd *exec.Cmd) {
	c := childOf(cmd)

	go func() {
		if <-c.ended; c.alone {
			x.breaks("O5: %s ended by itself: %s; it said last: %s", name, cmd.ProcessState, lastLine(x.output(name)))
		}
	}()
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)

	return text[strings.LastIndex(text, "\n")+1:]
}

// takeAway notes that a host's worker is about to be dead or frozen.
func (x *chaos) takeAway(h *host) {
	h.away = true
	x.broke(h.name)
	x.begins(absence, h.name, time.Now())
}

func (x *chaos) endWorker(h *host, e event, signal syscall.Signal, next string) {
	if !h.up() {
		return
	}

	x.takeAway(h)
	stop(h.worker, signal)
	x.fault(e.Kind, h.name, e.Lasts, func() {
		h.away = false
		x.startWorker(h, next)
	})
}

// otherBinary replaces a worker by one of another version for a while.
func (x *chaos) otherBinary(h *host, e event) {
	if x.other == "" {
		x.note("no other binary: CHAOS_OTHER_BINARY names none")

		return
	}

	if !h.up() {
		return
	}

	x.takeAway(h)
	stop(h.worker, syscall.SIGTERM)
	x.startWorker(h, x.other)
	x.fault(e.Kind, h.name, e.Lasts, func() {
		x.begins(absence, h.name, time.Now())
		stop(h.worker, syscall.SIGTERM)

		h.away = false
		x.startWorker(h, binary)
	})
}

// freezeWorker stops a worker for longer than it may be silent, or shorter.
func (x *chaos) freezeWorker(h *host, e event) {
	if !h.up() {
		return
	}

	x.takeAway(h)
	_ = h.worker.Process.Signal(syscall.SIGSTOP)

	x.fault(e.Kind, h.name, e.Lasts, func() {
		h.away = false
		_ = h.worker.Process.Signal(syscall.SIGCONT)
		x.ends(absence, h.name, time.Now())
		x.hostRecovered(h)
	})
}

func (x *chaos) partition(h *host, e event, fromPostgres, fromTemporal bool) {
	if h.cut {
		return
	}

	h.cut = true
	x.broke(h.name)

	if fromTemporal {
		x.begins(silence, h.name, time.Now())
	}

	if fromPostgres {
		x.cut(h.postgres)
		x.blinded(h)
	}

	if fromTemporal {
		x.cut(h.temporal)
	}

	x.fault(e.Kind, h.name, e.Lasts, func() {
		h.cut = false
		x.heal(h.postgres)
		x.sighted(h)
		x.heal(h.temporal)
		x.ends(silence, h.name, time.Now())
		x.hostRecovered(h)
	})
}

func (x *chaos) spoilDocker(h *host, e event, mode int32) {
	p := x.docker[h.name]
	if p.mode.Load() != dockerWell {
		return
	}

	p.mode.Store(mode)
	x.broke(h.name)
	x.begins(breakdown, h.name, time.Now())
	x.fault(e.Kind, h.name, e.Lasts, func() {
		p.mode.Store(dockerWell)
		x.ends(breakdown, h.name, time.Now())
		x.hostRecovered(h)
	})
}

// startSecond starts the other server.
func (x *chaos) startSecond() {
	first, api, process, listen := x.url, x.api, x.server, x.listen

	x.listen = "127.0.0.1:" + strconv.Itoa(freePort(x.t))
	x.startServer()
	x.apis = append(x.apis[:1], x.api)
	x.second = x.server
	x.guard("server", x.second)
	x.url, x.api, x.server, x.listen = first, api, process, listen

	x.t.Cleanup(func() { stop(x.second, syscall.SIGTERM) })
}

// killServer kills one of the servers.
func (x *chaos) killServer(e event) {
	if e.Pick%2 == 0 {
		if x.server == nil {
			return
		}

		stop(x.server, syscall.SIGKILL)
		x.server = nil
		x.broke("server")
		x.fault(e.Kind, "server", e.Lasts, func() {
			x.startServer()
			x.guard("server", x.server)
			x.recovered("server")
		})

		return
	}

	if x.second == nil {
		return
	}

	stop(x.second, syscall.SIGKILL)
	x.second = nil
	x.broke("second server")
	x.fault(e.Kind, "second server", e.Lasts, func() {
		x.startSecond()
		x.recovered("second server")
	})
}

func (x *chaos) killOfTemporal(e event) {
	if slices.ContainsFunc(x.due, func(r repair) bool {
		return strings.Contains(r.what, "of Temporal") && strings.Contains(r.what, "kill")
	}) {
		return
	}

	x.broke("Temporal")
	x.begins(silence, "", time.Now())
	x.killTemporal()
	x.fault(e.Kind, "Temporal", e.Lasts, func() {
		x.startTemporal()
		x.ends(silence, "", time.Now())
		x.recovered("Temporal")
	})
}

// ours is a container with what its labels say.
type ours struct {
	container

	sweep, host string // ids
}

// ps lists the run's containers by name.
func (x *chaos) ps() []ours {
	out, err := exec.Command("docker", "ps", "--all", "--no-trunc", "--filter", "label=berth.instance="+x.instance, //nolint:noctx // answers at once
		"--format", `{{.ID}} {{.Names}} {{.State}} {{.Label "berth.sweep"}} {{.Label "berth.host"}}`).Output()
	if err != nil {
		return nil
	}

	var all []ours

	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 5 {
			all = append(all, ours{container{f[0], f[1], f[2]}, f[3], f[4]})
		}
	}

	slices.SortFunc(all, func(a, b ours) int { return strings.Compare(a.name, b.name) })

	return all
}

// hitContainer does something to a container that only a person would do.
func (x *chaos) hitContainer(e event, args ...string) {
	var all []ours

	hittable := map[string]bool{}
	for _, o := range x.all() {
		hittable[o.id] = jobNamed(o.order.Job).hittable
	}

	for _, c := range x.ps() {
		if c.state == "running" && hittable[c.sweep] {
			all = append(all, c)
		}
	}

	if len(all) == 0 {
		return
	}

	one := all[e.Pick%uint64(len(all))]

	x.mu.Lock()
	x.removed[one.name] = true
	x.hit[x.attemptOf(one.name)] = true
	x.mu.Unlock()

	_ = exec.Command("docker", append(args, one.id)...).Run() //nolint:noctx // it may have ended
	x.fault(e.Kind, one.name, 0, nil)
}

func (x *chaos) attemptOf(container string) string {
	return strings.TrimPrefix(container, "berth-"+x.instance+"-")
}

// terminateSweep ends the workflow of a sweep as a person does in Temporal.
func (x *chaos) terminateSweep(o *ordered) {
	if _, ok := x.healthySince("Temporal"); !ok {
		return
	}

	o.deeds.Terminated = true
	x.note("terminate workflow of sweep %s: %t", o, x.terminated(workflows.SweepWorkflowID(o.id)))
}

// terminateTrial does the same to a trial. A sweep that has continued as new
// looks up the trials of its earlier runs after five minutes only, which is longer
// than a calm: these are left out (workflows.TestSweep_LooksUpTrialsOfEarlierRunsWhileNewsCome).
func (x *chaos) terminateTrial(o *ordered, number int) {
	if _, ok := x.healthySince("Temporal"); !ok {
		return
	}

	if why := x.hearsLate(o); why != "" {
		x.note("no workflow of a trial of sweep %s is terminated: %s", o, why)

		return
	}

	if o.deeds.TrialsEnded == nil {
		o.deeds.TrialsEnded = map[int]bool{}
	}

	o.deeds.TrialsEnded[number] = true
	x.note("terminate workflow of sweep %s trial %d: %t", o, number, x.terminated(workflows.TrialWorkflowID(o.id, number)))
}

// hearsLate says why a sweep may hear late that a workflow of its trials ended.
func (x *chaos) hearsLate(o *ordered) string {
	connected, err := dialTemporal(x.t.Context(), x.temporal.Address)
	if err != nil {
		return err.Error()
	}
	defer connected.Close()

	described, err := connected.DescribeWorkflowExecution(x.t.Context(), workflows.SweepWorkflowID(o.id), "")
	if err != nil {
		return err.Error()
	}

	return continues(described.GetWorkflowExecutionInfo())
}

// continueSoon is the longest history, in events, with which a run is sure to hear
// of a trial's end before it continues as new (continueEarly): opening eight
// trials at once adds some twenty events.
const continueSoon = 40

// continues says whether a sweep's workflow has continued as new, or soon may.
func continues(newest *workflow.WorkflowExecutionInfo) string {
	switch {
	case newest.GetExecution().GetRunId() != newest.GetFirstRunId():
		return "it has continued as new"
	case newest.GetHistoryLength() > continueSoon:
		return fmt.Sprintf("it may continue as new, after %d events", newest.GetHistoryLength())
	default:
		return ""
	}
}

func (x *chaos) healthySince(part string) (time.Time, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()

	since, ok := x.healthy[part]

	return since, ok
}

// hostOf is the host with an id.
func (x *chaos) hostOf(id string) *host {
	for _, h := range x.hosts {
		if data, err := os.ReadFile(filepath.Join(h.dir, "host-id")); err == nil && strings.TrimSpace(string(data)) == id {
			return h
		}
	}

	return nil
}

// requireHost is hostOf where the test is wrong without one.
func (x *chaos) requireHost(id string) *host {
	h := x.hostOf(id)
	require.NotNil(x.t, h, "no host has id %s", id)

	return h
}
