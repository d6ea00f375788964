//go:build integration

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berthml/berth/internal/pgtest"
)

// watch looks at the invariants that hold at every moment, until ctx ends.
func (x *chaos) watch(ctx context.Context) {
	before := time.Now()

	for ctx.Err() == nil {
		now := time.Now()
		if now.Sub(before) > slowLook {
			x.note("the last look took %s", now.Sub(before).Round(time.Second))
			x.begins(silence, "", before)
			x.ends(silence, "", now)
		}

		x.noticeServing()
		x.look(ctx, min(now.Sub(before), 2*chaosLook))
		before = now

		pause(ctx, chaosLook)
	}
}

// slowLook says that the machine is so busy that workers may miss heartbeats. A
// look takes some tenths of a second.
const slowLook = fastHeartbeat - time.Second

// begins and ends note what befalls a host, or all of them ("").
func (x *chaos) begins(kind troubleKind, host string, at time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()

	x.troubles = append(x.troubles, trouble{span{from: at}, kind, host})
}

func (x *chaos) ends(kind troubleKind, host string, at time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()

	for i, t := range slices.Backward(x.troubles) {
		if t.kind == kind && t.host == host && t.until.IsZero() {
			x.troubles[i].until = at

			return
		}
	}
}

// noticeServing ends the absence of workers that serve again.
func (x *chaos) noticeServing() {
	x.mu.Lock()
	awaited := maps.Clone(x.awaited)
	x.mu.Unlock()

	for host, n := range awaited {
		if strings.Count(x.output(host), workerServes) < n {
			continue
		}

		x.ends(absence, host, time.Now())

		x.mu.Lock()
		delete(x.awaited, host)
		x.mu.Unlock()
	}
}

// workerServes is what a worker says once it takes work.
const workerServes = "worker serves"

// look looks once; passed is the time since the last look.
func (x *chaos) look(ctx context.Context, passed time.Duration) {
	attempts := x.liveAttempts()

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

	if x.lookAtLimits(ctx, inspector, attempts) != nil {
		return
	}

	for _, text := range x.withoutForgotten(broken) {
		x.breaks("%s", text)
	}

	for _, attempt := range unleased { // released while it was listed, unless it still runs
		if time.Now().After(x.grace()) && x.lives("berth-"+x.instance+"-"+attempt) {
			x.breaks("I2: the container of attempt %s runs without a lease", attempt)
		}
	}

	x.lookAtCancellations(passed)

	bounded, now, err := inspector.Bounded(ctx)
	if err != nil {
		return
	}

	x.judgeParallel(bounded, now)

	if x.remember(ctx, inspector) && x.lookAtCanaries(ctx, inspector, passed) == nil {
		x.looks++
	}
}

// withoutForgotten leaves out what a restored database explains: a trial ends as
// its workflow did, also when the attempt that had its result is lost.
func (x *chaos) withoutForgotten(broken []string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()

	var left []string

	for _, text := range broken {
		name, list, _ := strings.Cut(text, ": ")

		if name == pgtest.HasResult || name == pgtest.SameResult {
			trials := slices.DeleteFunc(strings.Split(list, "; "), func(trial string) bool {
				id, _, _ := strings.Cut(trial, " ")

				return x.forgotten[id]
			})
			if len(trials) == 0 {
				continue
			}

			text = name + ": " + strings.Join(trials, "; ")
		}

		left = append(left, text)
	}

	return left
}

// lookAtLimits compares what each new container may use with what its lease
// holds (I2). Neither changes.
func (x *chaos) lookAtLimits(ctx context.Context, inspector *pgtest.Inspector, attempts []string) error {
	fresh := slices.DeleteFunc(slices.Clone(attempts), func(attempt string) bool { return x.limited[attempt] })
	if len(fresh) == 0 || !time.Now().After(x.grace()) { // a restored database may lease anew what still runs
		return nil
	}

	reserved, err := inspector.Reserved(ctx, fresh)
	if err != nil {
		return err
	}

	args := []string{"inspect", "--type", "container", "--format", "{{.Name}} {{.HostConfig.Memory}}" +
		`{{range .Config.Env}}{{if eq . "CUDA_MPS_PIPE_DIRECTORY=/trial/mps"}} mps{{end}}{{end}}`}
	for _, attempt := range fresh {
		args = append(args, "berth-"+x.instance+"-"+attempt)
	}

	out, _ := exec.CommandContext(ctx, "docker", args...).Output() // fails for those that are gone, and tells of the others

	for line := range strings.Lines(string(out)) {
		x.judgeLimit(line, reserved)
	}

	return nil
}

// judgeLimit reads "/name bytes", and " mps" of a client of MPS, which the worker holds to
// its lease and the kernel to 2 GiB more.
func (x *chaos) judgeLimit(line string, reserved map[string]int64) {
	name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
	attempt := x.attemptOf(strings.TrimPrefix(name, "/"))

	holds, leased := reserved[attempt]
	if !leased { // that it has none is told elsewhere
		return
	}

	x.limited[attempt] = true

	text, byMPS := strings.CutSuffix(text, " mps")
	if byMPS {
		holds += 2 << 30
	}

	if limit, err := strconv.ParseInt(text, 10, 64); err != nil || limit != holds {
		x.breaks("I2: the container of attempt %s may use %s bytes, its lease holds %d", attempt, text, holds)
	}
}

// judgeParallel looks at the attempts of sweeps with max_parallel that were
// placed since the look before: none may be placed beside as many others (I2).
func (x *chaos) judgeParallel(live []pgtest.Bounded, now time.Time) {
	x.mu.Lock()

	before, since := x.bounded, x.boundedAt
	x.bounded, x.boundedAt = map[string]bool{}, now

	var counting []pgtest.Bounded

	for _, a := range live {
		x.bounded[a.Attempt] = true

		if x.counts(a, before, since) {
			counting = append(counting, a)
		}
	}

	graced := time.Now().Before(x.graced)
	x.mu.Unlock()

	for _, a := range live {
		if before[a.Attempt] || !a.PlacedAt.After(since) || graced {
			continue
		}

		others := 0

		for _, o := range counting {
			if o.Sweep == a.Sweep && o.Attempt != a.Attempt && !o.PlacedAt.After(a.PlacedAt) {
				others++
			}
		}

		if others >= a.MaxParallel {
			x.breaks("I2: attempt %s was placed although sweep %s ran %d others, as many as its max_parallel allows", a.Attempt, a.Sweep, others)
		}
	}
}

// counts reports whether a live attempt has counted for max_parallel ever since
// the look before, or since it was placed. On a host with a fault it may have
// been given up, for which it did not count, and given back, which leaves its
// PlacedAt as it was.
func (x *chaos) counts(a pgtest.Bounded, before map[string]bool, since time.Time) bool {
	healthy, ok := x.healthy[a.Host]

	return ok && since.Sub(healthy) > placeLate && (before[a.Attempt] || a.PlacedAt.After(since))
}

func (x *chaos) grace() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()

	return x.graced
}

// liveAttempts are the attempts whose containers run, each with one container
// for ever (R1).
func (x *chaos) liveAttempts() []string {
	var attempts []string

	all := x.ps()

	x.mu.Lock()
	defer x.mu.Unlock()

	for _, c := range all {
		if c.state != "running" {
			continue
		}

		attempt := x.attemptOf(c.name)
		attempts = append(attempts, attempt)

		if text := "R1: attempt " + attempt + " of sweep " + c.sweep + " had two containers"; x.seen[c.name] != "" && x.seen[c.name] != c.id &&
			!x.removed[c.name] && !slices.Contains(x.broken, text) {
			x.broken = append(x.broken, text)
		}

		x.seen[c.name] = c.id
	}

	return attempts
}

// remember compares what has ended, and what only counts up, with what was
// there before (I3, I6).
func (x *chaos) remember(ctx context.Context, inspector *pgtest.Inspector) bool {
	results, err := inspector.Results(ctx)
	if err != nil {
		return false
	}

	counters, err := inspector.Counters(ctx)
	if err != nil {
		return false
	}

	x.compare(results, counters)

	return true
}

// compare keeps what it was given, and says what has changed against that of
// before. During the grace after a restore it does neither: what had ended
// before the copy is compared with what is there afterwards.
func (x *chaos) compare(results map[string]string, counters map[string]int64) {
	var broken []string

	x.mu.Lock()

	if time.Now().After(x.graced) {
		for name, result := range x.results {
			if now, ok := results[name]; !ok || now != result {
				broken = append(broken, fmt.Sprintf("I3: the end of %s changed from %q to %q", name, result, now))
			}
		}

		for name, n := range counters {
			if n < x.counters[name] {
				broken = append(broken, fmt.Sprintf("I6: %s went back from %d to %d", name, x.counters[name], n))
			}
		}

		x.results, x.counters = results, counters
	}

	x.mu.Unlock()

	for _, text := range broken {
		x.breaks("%s", text)
	}
}

// canaryRoom is what a canary needs.
const (
	canaryBytes    = 16 << 20
	canaryCPUMilli = 100
)

// lookAtCanaries counts how long canaries wait although they need not (O2).
func (x *chaos) lookAtCanaries(ctx context.Context, inspector *pgtest.Inspector, passed time.Duration) error {
	var ids []string

	canaries := map[string]*ordered{}

	x.mu.Lock()
	for _, o := range x.extra {
		if o.id != "" && o.order.Job == "canary" {
			canaries[o.id], ids = o, append(ids, o.id)
		}
	}
	x.mu.Unlock()

	open, err := inspector.Canaries(ctx, ids)
	if err != nil || len(open) == 0 {
		return err
	}

	roomy, wanted, err := inspector.Roomy(ctx, canaryBytes, canaryCPUMilli)
	if err != nil {
		return err
	}

	up := x.reachable(x.staying())
	roomy = slices.DeleteFunc(roomy, func(name string) bool { return !slices.Contains(up, name) })

	if wanted && len(roomy) == 1 { // it may be kept free
		roomy = nil
	}

	for _, c := range open {
		if !overdue(c, canaries[c.Sweep].order.Group == calmGroup, up, roomy) {
			continue
		}

		x.mu.Lock()
		x.waited[c.Sweep] += passed
		waited := x.waited[c.Sweep]
		x.mu.Unlock()

		if waited >= canaryPatience && waited-passed < canaryPatience {
			x.breaks("O2: %s waited %s %s%s", canaries[c.Sweep], canaryPatience, waitsFor(c, roomy), x.stuckPlacing())
		}
	}

	return nil
}

// overdue reports whether a canary that is open could go on: to a place when a
// healthy host has room for it, to its start when its own host is healthy. The
// one of the calm must end, too.
func overdue(c pgtest.Canary, ofCalm bool, up, roomy []string) bool {
	if c.Host == "" {
		return len(roomy) > 0
	}

	return slices.Contains(up, c.Host) && (ofCalm || !c.Started)
}

func waitsFor(c pgtest.Canary, roomy []string) string {
	switch {
	case c.Host == "":
		return "to be placed while " + roomy[0] + " was healthy and had room"
	case c.Started:
		return "to end on " + c.Host + ", which was healthy"
	default:
		return "to start on " + c.Host + ", which was healthy"
	}
}

// lookAtCancellations says since when everybody must have heard of those that
// were acknowledged.
func (x *chaos) lookAtCancellations(passed time.Duration) {
	if len(x.reachable(x.staying())) == 0 {
		return
	}

	x.mu.Lock()
	defer x.mu.Unlock()

	for _, o := range slices.Concat(x.sweeps, x.extra) {
		if o.deeds.CanceledAt.IsZero() || !o.deeds.CancelDue.IsZero() {
			continue
		}

		if x.waited[o.id] += passed; x.waited[o.id] >= cancelPatience {
			o.deeds.CancelDue = time.Now()
		}
	}
}

// stuckPlacing is what the servers, which share a log, said last about placing:
// that stops everybody's placements.
func (x *chaos) stuckPlacing() string {
	for _, line := range slices.Backward(strings.Split(x.output("server"), "\n")) {
		if strings.Contains(line, "msg=placing") || strings.Contains(line, `"placing"`) {
			return "; the server says: " + line
		}
	}

	return ""
}

// reachable are those of the hosts that are known to be healthy, when all that
// placing needs is up for long enough to have found itself again.
func (x *chaos) reachable(hosts []string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()

	if x.holding() {
		return nil
	}

	for part, settles := range map[string]time.Duration{"PostgreSQL": 6 * time.Second, "Temporal": 8 * time.Second} {
		if since, ok := x.healthy[part]; !ok || time.Since(since) < settles {
			return nil
		}
	}

	settled := func(part string, settles time.Duration) bool {
		since, ok := x.healthy[part]

		return ok && time.Since(since) >= settles
	}

	// When one server dies the other takes over once the database has missed it.
	if !settled("server", 12*time.Second) || !settled("second server", 12*time.Second) {
		return nil
	}

	var found []string

	for _, h := range hosts {
		if settled(h, 8*time.Second) {
			found = append(found, h)
		}
	}

	return found
}

// blindLong is how long a worker without the database may hold the workflows of
// others: it stops to take them after 10 s, and Temporal gives those that it has
// to another worker within 15 s. Cuts last up to 16 s, and longer on a busy
// machine, where the repair of another fault holds up their end.
const (
	blindLong   = 10 * time.Second
	blindSettle = 15 * time.Second
)

// blinded and sighted note when a host does not see the database.
func (x *chaos) blinded(h *host) {
	x.mu.Lock()
	x.blind[h.name] = time.Now()
	x.mu.Unlock()
}

func (x *chaos) sighted(h *host) {
	x.mu.Lock()
	defer x.mu.Unlock()

	if since, ok := x.blind[h.name]; ok && time.Since(since) > blindLong {
		x.held = time.Now().Add(blindSettle)
	}

	delete(x.blind, h.name)
}

// holding reports whether a host may hold workflows that it cannot go on with.
func (x *chaos) holding() bool {
	for _, since := range x.blind {
		if time.Since(since) > blindLong {
			return true
		}
	}

	return time.Now().Before(x.held)
}

// lives asks for a container's own state: in the list, one that has exited is
// running until Docker has written that down.
func (x *chaos) lives(name string) bool {
	out, err := exec.Command("docker", "inspect", "--format", "{{.State.Running}}", name).Output() //nolint:noctx // answers at once

	return err == nil && strings.TrimSpace(string(out)) == "true"
}

// endedNow is what has ended, and what only counts up.
func (x *chaos) endedNow() (results map[string]string, counters map[string]int64) {
	x.mu.Lock()
	defer x.mu.Unlock()

	return maps.Clone(x.results), maps.Clone(x.counters)
}
