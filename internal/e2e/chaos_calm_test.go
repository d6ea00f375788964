//go:build integration

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/pgtest"
)

// calmGroup sets the shapes of the calm apart.
const calmGroup = 1_000_000

// calm ends all faults, lets everything end, and compares what came of it with
// what must have. Nothing is cured before it was looked at: sweeps that a
// person paused stay paused until all others have ended.
func (x *chaos) calm() {
	x.mend(true)
	x.note("calm")
	x.testCordoned()
	x.submitExtra(order{Job: "canary", Name: "canary of the calm", Group: calmGroup, Probe: "off", Times: []int{100}})

	for _, job := range slices.Sorted(maps.Keys(sequels)) { // those of the storm may have been stopped or canceled
		x.submitExtra(order{Job: job, Name: job + " of the calm", Group: calmGroup, Times: []int{200}})
	}

	x.insist(acceptPatience) // their answers may have been lost
	x.cancelAgain()
	x.await("while the paused ones stay paused", func(s client.Sweep) bool { return s.State == client.SweepStatePaused })
	x.replay()
	x.insist(acceptPatience)
	x.sequels()

	for _, o := range x.all() {
		if s, found := x.read(o); found == isThere && s.State == client.SweepStatePaused {
			if wrong := judgePause(o.deeds, sweepRecord{State: string(s.State), Reason: s.Reason}); wrong != "" {
				x.breaks("O1: sweep %s %s", o, wrong)
			}

			x.note("resume of sweep %s", o)
			x.steerTo(o, "resume")
		}
	}

	x.removeLost()
	x.await("after all were resumed", func(client.Sweep) bool { return false })
	x.callRoll()
	x.measure()
	x.lookAtContinued()

	for _, o := range x.all() { // what was right in the storm must be so still
		o.judged = false
	}

	x.judgeAll(judgePatience)

	x.lookAtCordons()

	if x.stuck == chaosStuck { // else what is left belongs to what is still open
		x.tidy()
	}
}

// cancelAgain cancels what runs for longer than a calm and was to be canceled in
// the storm: its cancellation may not have been answered, or a restored database
// may have forgotten it.
func (x *chaos) cancelAgain() {
	for _, o := range x.all() {
		if slices.Max(o.order.Times) < canceledLasts {
			continue
		}

		if !x.until(acceptPatience, func() bool {
			s, found := x.read(o)

			return found == isGone || s.FinishedAt != nil || !o.deeds.CanceledAt.IsZero() || x.steerTo(o, "cancel")
		}) {
			x.breaks("O4: the cancellation of sweep %s was not accepted in %s without faults", o, acceptPatience)
		}
	}
}

const (
	// acceptPatience is how long a server without faults may refuse sweeps for
	// its own reasons, such as workers that have just come back.
	acceptPatience = time.Minute
	// judgePatience is how long what has ended may not be told. A long storm has
	// thousands of sweeps, and a server answers 200 questions a second.
	judgePatience = 2 * time.Minute
)

// insist submits what no server has answered until it is accepted or refused.
func (x *chaos) insist(patience time.Duration) {
	var left []*ordered

	x.until(patience, func() bool {
		left = nil

		for _, o := range slices.Concat(x.sweeps, x.extra) {
			if o.id != "" || o.refused {
				continue
			}

			if x.submit(o); o.id == "" && !o.refused {
				left = append(left, o)

				break // the others get the same answer
			}
		}

		return len(left) == 0
	})

	for _, o := range left {
		x.breaks("O4: %s was not accepted in %s without faults", o.order.Name, patience)
	}
}

// judgeAll judges until the servers have told all of every sweep.
func (x *chaos) judgeAll(patience time.Duration) {
	var untold map[*ordered]string

	x.until(patience, func() bool {
		untold = x.judge()

		return len(untold) == 0
	})

	for o, what := range untold {
		x.breaks("O1: sweep %s cannot be judged: the server did not tell %s in %s", o, what, patience)
	}
}

// testCordoned makes the tests of cordoned hosts due. A host that was sick late in
// the storm has its next test minutes later, and what fits only there waits for
// that longer than a calm does.
func (x *chaos) testCordoned() {
	x.lookAtCordons()

	_, err := x.inspect(func(i *pgtest.Inspector, ctx context.Context) ([]string, error) { return nil, i.TestCordoned(ctx) })
	require.NoError(x.t, err)
}

// lookAtCordons demands that no host stays cordoned which has started a container
// since its last failure, or waits long for its test (O2). Tests come a minute or
// more after the cordon, so that only some of them are seen.
func (x *chaos) lookAtCordons() {
	var cordoned []string

	x.until(judgePatience, func() bool {
		found, err := x.inspect((*pgtest.Inspector).Cordoned)
		cordoned = found

		return err == nil
	})

	for _, host := range cordoned {
		x.breaks("O2: %s", host)
	}
}

// sequels submits what comes after sweeps of some jobs, with their groups.
func (x *chaos) sequels() {
	some := false

	for i, o := range x.all() {
		job, follows := sequels[o.order.Job]
		if s, _ := x.read(o); !follows || s.Counts.Succeeded == 0 || !x.measured(o) {
			continue
		}

		some = true
		x.submitExtra(order{Job: job, Name: fmt.Sprintf("%s %d after %s", job, i, o.order.Name), Group: o.order.Group, Times: []int{200}})
	}

	if some {
		x.insist(acceptPatience)
		x.await("which came later", func(s client.Sweep) bool { return s.State == client.SweepStatePaused })
	}
}

const (
	// comeBack is how long a host may stay out of service without faults: a
	// worker looks every 2 s whether Temporal answers, and asks Docker every second.
	comeBack = 30 * time.Second
	// rollLasts is how many ms the trials of a roll call run: longer than all of
	// them take to start.
	rollLasts = 60_000
)

// callRoll demands that all hosts but lost ones are in service again, and that
// each takes attempts (O2): as many trials as they have cores run all at once.
func (x *chaos) callRoll() {
	if x.stuck != chaosStuck { // what is stuck holds up others
		return
	}

	var (
		names = x.staying()
		hosts []client.Host
		out   []string
	)

	if !x.until(comeBack, func() bool {
		answer, err := x.api.ListHostsWithResponse(x.t.Context())
		if err != nil || answer.JSON200 == nil {
			out = []string{"the server does not list its hosts"}

			return false
		}

		hosts = answer.JSON200.Data
		out = outOfService(hosts, names)

		return len(out) == 0
	}) {
		x.breaks("O2: after %s without faults %s", comeBack, strings.Join(out, "; "))

		return
	}

	x.testCordoned()

	x.callAll("roll call", rollTimes(hosts, names, func(h client.Host) int { return int(h.CPUMilli) / 1000 }), names)
	x.callAll("gpu roll call", rollTimes(hosts, names, func(h client.Host) int { return len(h.Devices) }), names)
}

// callAll demands that all trials of a roll call run at once on the named hosts.
func (x *chaos) callAll(job string, times []int, names []string) {
	if len(times) == 0 { // the hosts with GPUs are lost
		return
	}

	o := x.submitExtra(order{Job: job, Name: job, Group: calmGroup, Times: times})
	x.insist(acceptPatience)

	if o.id == "" {
		return
	}

	if !x.until(rollLasts*time.Millisecond, func() bool { return x.containersOf(o) == len(o.order.Times) }) {
		x.breaks("O2: sweep %s did not run %d trials at once on %s: %s%s",
			o, len(o.order.Times), strings.Join(names, ", "), x.openTrials(o), x.stuckPlacing())
	}

	x.steerTo(o, "cancel")
	x.await("after the roll call", func(client.Sweep) bool { return false })
}

// staying are the names of the hosts that are not lost.
func (x *chaos) staying() (names []string) {
	x.mu.Lock()
	defer x.mu.Unlock()

	for _, h := range x.hosts {
		if !slices.Contains(x.lost, h.name) {
			names = append(names, h.name)
		}
	}

	return names
}

// outOfService says which of the named hosts take no attempts, and why.
func outOfService(hosts []client.Host, names []string) (out []string) {
	for _, name := range names {
		i := slices.IndexFunc(hosts, func(h client.Host) bool { return h.Name == name })

		switch {
		case i < 0:
			out = append(out, name+" is not listed")
		case hosts[i].State != "ready" || hosts[i].Problem != "":
			out = append(out, fmt.Sprintf("%s is %s (%s)", name, hosts[i].State, hosts[i].Problem))
		}
	}

	return out
}

// rollTimes are the times of as many trials as the named hosts have of something.
func rollTimes(hosts []client.Host, names []string, has func(client.Host) int) (times []int) {
	for _, h := range hosts {
		for range has(h) {
			if slices.Contains(names, h.Name) {
				times = append(times, rollLasts+10*len(times))
			}
		}
	}

	return times
}

// containersOf is how many containers of a sweep run.
func (x *chaos) containersOf(o *ordered) (n int) {
	for _, c := range x.ps() {
		if c.sweep == o.id && c.state == "running" {
			n++
		}
	}

	return n
}

// measureTries is how many sweeps may run until their shape is measured: a run
// with a gap, as a busy machine makes them, measures nothing.
const measureTries = 3

// measure demands that a shape reserves what it was measured to need: one of the
// storm if there is one that has succeeded.
func (x *chaos) measure() {
	if x.stuck != chaosStuck { // what is stuck holds up others
		return
	}

	group, wrong := calmGroup, ""

	for _, o := range x.all() {
		if s, found := x.read(o); o.order.Job == "shared" && o.order.Probe != "off" && found == isThere && s.Counts.Succeeded > 0 {
			group = o.order.Group
		}
	}

	for n := range measureTries {
		o := x.submitExtra(order{Job: "shared", Name: fmt.Sprintf("measured shape %d", n), Group: group, Probe: "auto", Times: []int{1500, 1510}})
		x.insist(acceptPatience)
		x.await("whose shape is measured", func(client.Sweep) bool { return false })

		if !x.until(judgePatience, func() bool {
			s, found := x.read(o)
			if found != isThere || s.FinishedAt == nil {
				return false
			}

			r, told := x.record(x.api, o, s)
			wrong = judgeMeasured(r)

			return told
		}) {
			return // judgeAll says so
		}

		if wrong == "" {
			return
		}

		x.note("sweep %s: %s", o, wrong)
	}

	x.breaks("O1: %d sweeps of a small shape ran one after the other, and in the last one %s", measureTries, wrong)
}

// measured reports whether a run of the shape of a sweep was measured
// throughout. What another trial's out-of-memory adds has no bound before.
func (x *chaos) measured(o *ordered) bool {
	found, err := x.inspect(func(i *pgtest.Inspector, ctx context.Context) ([]string, error) { return i.Measured(ctx, o.id) })

	return err == nil && len(found) > 0
}

// await waits until every sweep has ended that may not stay as it is. When
// nothing has changed for long, each of them is wronged.
func (x *chaos) await(when string, mayStay func(client.Sweep) bool) {
	var (
		open    map[*ordered]client.Sweep
		before  string
		changed = time.Now()
		ended   = map[*ordered]bool{}
	)

	began := time.Now()

	for time.Since(began) < chaosQuiet && time.Since(changed) < x.stuck+x.heals {
		open = map[*ordered]client.Sweep{}
		state := ""

		for _, o := range x.all() {
			if ended[o] || o.judged {
				continue
			}

			s, found := x.read(o)
			ended[o] = found == isGone || s.FinishedAt != nil

			if ended[o] || s.Counts.Running == 0 && (mayStay(s) || x.waitsForLost(o)) {
				continue
			}

			open[o] = s
			state += fmt.Sprintf("%s %+v %s\n", o.id, s.Counts, s.State)
		}

		if len(open) == 0 {
			return
		}

		if state != before {
			before, changed = state, time.Now()
		}

		pause(x.t.Context(), chaosLook)
	}

	x.stuck = chaosStuckAgain

	for o, s := range open {
		x.breaks("I4: sweep %s is still %s %s; nothing changed for %s: %s%s", o, s.State, when, time.Since(changed).Round(time.Second), x.openTrials(o), x.pausedNow())
	}
}

// waitsForLost reports whether all open trials of a sweep wait for a host that is
// lost for good: only that one could hold them, and no person has removed it yet.
func (x *chaos) waitsForLost(o *ordered) bool {
	if x.given || len(x.lost) == 0 {
		return false
	}

	waits := false

	for _, t := range x.trialsOf(o) {
		if t.FinishedAt != nil {
			continue
		}

		if !onlyLostHolds(t.Waiting, x.lost) {
			return false
		}

		waits = true
	}

	return waits
}

// onlyLostHolds reports whether a trial that was rejected so waits for a lost
// host, and no other host could ever hold it.
func onlyLostHolds(rejections []client.Rejection, lost []string) bool {
	waits := false

	for _, r := range rejections {
		switch {
		case slices.Contains(lost, r.HostName):
			waits = waits || strings.Contains(r.Reason, "waits for it to come back")
		case !r.Never:
			return false
		}
	}

	return waits
}

// removeLost is what a person does who gives the lost hosts up, and the time that
// trials wait for a replacement then.
func (x *chaos) removeLost() {
	for _, name := range x.lost {
		x.note("host %s is given up", name)

		if !x.until(acceptPatience, func() bool {
			answer, err := x.api.RemoveHostWithResponse(x.t.Context(), name, &client.RemoveHostParams{Force: new(true)})

			return err == nil && answer.StatusCode() == http.StatusNoContent
		}) {
			x.breaks("O4: host %s was not removed in %s without faults", name, acceptPatience)
		}

		_, err := x.inspect(func(i *pgtest.Inspector, ctx context.Context) ([]string, error) {
			return nil, i.PassHostGrace(ctx, name)
		})
		require.NoError(x.t, err)
	}

	x.given = true
}

// openTrials says where each open trial of a sweep stands.
func (x *chaos) openTrials(o *ordered) string {
	var texts []string

	for _, t := range x.trialsOf(o) {
		if t.FinishedAt != nil {
			continue
		}

		text := fmt.Sprintf("trial %d is %s", t.Number, t.State)
		for _, r := range t.Waiting {
			text += " (" + r.Reason + ")"

			break
		}

		texts = append(texts, text)
	}

	return strings.Join(texts, ", ")
}

// pausedNow names the paused sweeps, for one of them may hold up another.
func (x *chaos) pausedNow() string {
	var texts []string

	for _, o := range x.all() {
		if s, found := x.read(o); found == isThere && s.State == client.SweepStatePaused {
			texts = append(texts, o.String())
		}
	}

	if len(texts) == 0 {
		return ""
	}

	return "; paused are " + strings.Join(texts, ", ")
}

// existence is what the servers say of a sweep.
type existence int

const (
	isUntold existence = iota // they do not say
	isThere
	isGone
)

// read returns a sweep as it is now, by the first server that says so. One that
// is gone and was acknowledged breaks I7.
func (x *chaos) read(o *ordered) (client.Sweep, existence) {
	for _, api := range x.apis {
		if s, found := x.readAt(api, o); found != isUntold {
			return s, found
		}
	}

	return client.Sweep{}, isUntold
}

func (x *chaos) readAt(api *client.ClientWithResponses, o *ordered) (client.Sweep, existence) {
	ctx, cancel := context.WithTimeout(x.t.Context(), askTimeout)
	defer cancel()

	answer, err := api.GetSweepWithResponse(ctx, o.id)

	switch {
	case err != nil:
		return client.Sweep{}, isUntold
	case answer.StatusCode() == http.StatusNotFound:
		if !o.forgettable {
			x.breaks("I7: sweep %s was acknowledged and is gone", o)
		}

		return client.Sweep{}, isGone
	case answer.JSON200 == nil:
		return client.Sweep{}, isUntold
	default:
		return *answer.JSON200, isThere
	}
}

// askTimeout is for one question to a server that may be dead or hang.
const askTimeout = 10 * time.Second

// listLimit is the most rows that the API gives at once; no sweep of a storm
// has as many.
const listLimit = 500

func (x *chaos) trialsOf(o *ordered) []client.Trial {
	answer, err := x.api.ListTrialsWithResponse(x.t.Context(), o.id, &client.ListTrialsParams{Limit: new(client.Limit(listLimit))})
	if err != nil || answer.JSON200 == nil {
		return nil
	}

	return answer.JSON200.Data
}

// record is all that the oracle looks at of a sweep; false when a server does
// not say all of it.
func (x *chaos) record(api *client.ClientWithResponses, o *ordered, s client.Sweep) (sweepRecord, bool) {
	r := sweepRecord{State: string(s.State), Reason: s.Reason, Planned: o.order.planned()}

	attempts := map[string][]attemptRecord{}

	answer, err := api.ListSweepAttemptsWithResponse(x.t.Context(), o.id, &client.ListSweepAttemptsParams{Limit: new(client.Limit(listLimit))})
	if err != nil || answer.JSON200 == nil {
		return r, false
	}

	x.mu.Lock()
	for _, a := range answer.JSON200.Data {
		one := attemptRecord{
			ID: a.ID, Number: a.Number, Kind: a.FailureKind, Message: a.Message, ReservedBytes: a.Demand.MemoryBytes,
			PlacedAt: a.PlacedAt, Started: a.StartedAt != nil, Hit: x.hit[a.ID],
			Device: a.DeviceID, DeviceBytes: a.Demand.DeviceBytes, DevicePeak: a.Usage.DevicePeakBytes,
			MPS: berth.DeviceClass(a.DeviceClass).Mode() == berth.SharingMPS,
		}

		if a.FinishedAt != nil {
			one.FinishedAt = *a.FinishedAt
		}

		if h := x.hostOf(a.HostID); h != nil && a.FinishedAt != nil && berth.FailureKind(a.FailureKind) == berth.FailureInfra {
			one.Host, one.Unprovoked = h.name, !provoked(x.troubles, h.name, a.Message, a.PlacedAt, *a.FinishedAt)
		}

		attempts[a.TrialID] = append(attempts[a.TrialID], one)
	}
	x.mu.Unlock()

	trials, err := api.ListTrialsWithResponse(x.t.Context(), o.id, &client.ListTrialsParams{Limit: new(client.Limit(listLimit))})
	if err != nil || trials.JSON200 == nil {
		return r, false
	}

	for _, t := range trials.JSON200.Data {
		values := map[string]string{}
		for name, v := range t.Params {
			values[name] = v.String()
		}

		one := trialRecord{
			Number: t.Number, State: string(t.State), Kind: t.FailureKind, Message: t.Message, Value: t.Value,
			Values: values, Attempts: attempts[t.ID], Forgotten: x.hasForgotten(t.ID),
		}
		if t.FinishedAt != nil {
			one.FinishedAt = *t.FinishedAt
		}

		if len(jobNamed(o.order.Job).want(values).Epochs) > 0 && !x.attend(api, one.Attempts) {
			return r, false
		}

		r.Trials = append(r.Trials, one)
	}

	return r, true
}

// attend reads what the attempts that ended well reported and printed, and
// reports whether it was told.
func (x *chaos) attend(api *client.ClientWithResponses, attempts []attemptRecord) bool {
	for i, a := range attempts {
		if berth.FailureKind(a.Kind) != berth.FailureOK {
			continue
		}

		metrics, err := api.ListMetricsWithResponse(x.t.Context(), a.ID, &client.ListMetricsParams{Name: new("val")})
		if err != nil || metrics.JSON200 == nil {
			return false
		}

		log, err := api.ReadLogWithResponse(x.t.Context(), a.ID, &client.ReadLogParams{})
		if err != nil || log.StatusCode() != http.StatusOK {
			return false
		}

		attempts[i].Heard = &heard{Points: map[int64]float64{}, Log: string(log.Body)}

		for _, m := range metrics.JSON200.Data {
			if m.Value != nil {
				attempts[i].Heard.Points[m.Step] = *m.Value
			}
		}
	}

	return true
}

func (x *chaos) hasForgotten(trial string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()

	return x.forgotten[trial]
}

// judge compares every sweep that has ended since with the oracle (O1), and
// with what was acknowledged (I7). Each server is asked about some of them. It
// returns what it was not told.
func (x *chaos) judge() (untold map[*ordered]string) {
	untold = map[*ordered]string{}

	for i, o := range x.all() {
		if o.judged {
			continue
		}

		api := x.apis[i%len(x.apis)]

		s, found := x.readAt(api, o)
		if found != isThere {
			if found == isUntold {
				untold[o] = "its state"
			}

			continue
		}

		if s.Name != o.acked.Name || !sameJSON(s.Spec, o.acked.Spec) {
			x.breaks("I7: sweep %s was acknowledged as %q %s and is %q %s", o, o.acked.Name, o.acked.Spec, s.Name, s.Spec)
		}

		if s.FinishedAt == nil {
			continue
		}

		r, ok := x.record(api, o, s)
		if !ok {
			untold[o] = "its trials and attempts"

			continue
		}

		o.judged = true
		x.judgements++

		for _, wrong := range judgeSweep(o.order, o.deeds, r) {
			x.breaks("O1: sweep %s %s", o, wrong)
		}
	}

	return untold
}

// sameJSON compares documents, whatever the order of their keys.
func sameJSON(a, b []byte) bool {
	var left, right any

	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

// tidy looks whether anything is left two periods of the reconciler, its
// grace, and what two rounds take after the end of all.
func (x *chaos) tidy() {
	var broken []string

	x.until(2*fastReconcile+fastGrace+10*time.Second, func() bool {
		broken = x.ledger()
		for _, c := range x.containers() {
			broken = append(broken, "I5 no container is left: "+c.name+" is "+c.state)
		}

		broken = append(broken, x.openWorkflows()...)

		return len(broken) == 0
	})

	for _, text := range broken {
		x.breaks("%s", text)
	}
}

// ledger returns what is broken in the ledger now that all has ended.
func (x *chaos) ledger() []string {
	inspector, err := pgtest.Inspect(x.t.Context(), x.postgres.URL)
	if err != nil {
		return []string{err.Error()}
	}
	defer inspector.Close(context.WithoutCancel(x.t.Context()))

	x.mu.Lock()
	inspector.Lost = slices.Clone(x.lost)
	x.mu.Unlock()

	broken, err := inspector.Broken(x.t.Context(), true)
	if err != nil {
		return []string{err.Error()}
	}

	sweeps, err := inspector.Sweeps(x.t.Context())
	if err != nil {
		return []string{err.Error()}
	}

	return append(x.withoutForgotten(broken), x.judgeExistence(sweeps)...)
}

// judgeExistence compares the sweeps of the ledger with those that were
// acknowledged: a submission that was repeated, and one that was refused, make
// none of their own (O4), and none goes (I7).
func (x *chaos) judgeExistence(ids []string) (wrong []string) {
	for _, id := range ids {
		if !slices.ContainsFunc(x.all(), func(o *ordered) bool { return o.id == id }) {
			wrong = append(wrong, "O4: sweep "+id+" is there, and its submission was never acknowledged")
		}
	}

	for _, o := range x.all() {
		if !o.forgettable && !slices.Contains(ids, o.id) {
			wrong = append(wrong, fmt.Sprintf("I7: sweep %s was acknowledged and is gone", o))
		}
	}

	return wrong
}

// continuingTrials is how many trials a sweep has at least that must have
// continued as new (continueEarly).
const continuingTrials = 10

// lookAtContinued demands that sweeps of many trials have continued as new, since
// what else a run shows of that is worth nothing.
func (x *chaos) lookAtContinued() {
	connected, err := dialTemporal(x.t.Context(), x.temporal.Address)
	require.NoError(x.t, err)

	defer connected.Close()

	found, err := connected.CountWorkflow(x.t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: "ExecutionStatus = 'ContinuedAsNew'"})
	require.NoError(x.t, err)

	x.injected["runs continued as new"] = int(found.GetCount())

	for _, o := range x.all() {
		if s, told := x.read(o); told == isThere && s.Counts.Succeeded >= continuingTrials && found.GetCount() == 0 {
			x.breaks("the storm proves less than it says: no sweep has continued as new, and %s has had %d trials", o, s.Counts.Succeeded)
		}
	}
}

// openQuery leaves out the workflow that holds the installation's id, which never ends.
const openQuery = "ExecutionStatus = 'Running' AND WorkflowType != 'berth-installation'"

// openWorkflows are those that go on now that all has ended.
func (x *chaos) openWorkflows() []string {
	connected, err := dialTemporal(x.t.Context(), x.temporal.Address)
	if err != nil {
		return []string{err.Error()}
	}
	defer connected.Close()

	query := openQuery
	if slices.ContainsFunc(x.all(), func(o *ordered) bool { return len(o.deeds.TrialsEnded) > 0 }) {
		query += " AND WorkflowType != 'ProbeWorkflow'" // it looks within 10 minutes for a trial that a person ended in Temporal
	}

	open, err := connected.ListWorkflow(x.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
	if err != nil {
		return []string{err.Error()}
	}

	texts := make([]string, len(open.GetExecutions()))
	for i, w := range open.GetExecutions() {
		texts[i] = fmt.Sprintf("I5 no workflow is left: %s runs since %s", w.GetExecution().GetWorkflowId(), w.GetStartTime().AsTime().Format(time.TimeOnly))
	}

	return texts
}
