package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/postgres"
)

// flow takes a small sweep through its whole life, beside a year's history: it runs the
// statements that write.
type flow struct {
	*testing.B

	ctx   context.Context //nolint:containedctx // of one benchmark
	s     *postgres.Store
	pool  *pgxpool.Pool
	host  berth.Host
	sweep string
}

// run deletes its sweep in the end. Its host stays, removed, and its token, revoked.
func (f *flow) run() {
	f.host = berth.Host{
		ID: uuid.NewString(), Name: "flow", BootID: "b", MachineID: "flow", CPUMilli: 64_000, MemoryBytes: 64 * gib, MemoryFreeBytes: 64 * gib,
		Devices: []berth.Device{{ID: "flow", Model: "H200", Mode: berth.SharingTimeSlicing, MemoryBytes: 64 * gib, FreeBytes: 64 * gib, MaxContexts: 48}},
	}
	f.sweep = uuid.NewString()

	f.people()
	f.machine()
	requests := f.begin()
	f.attempts(requests)
	f.files(requests[0])
	f.checkpoints(requests[1])
	f.installation()
	f.end(requests)
}

// people are tokens, sessions and secrets.
func (f *flow) people() {
	hash := []byte(uuid.NewString()[:32])
	token, err := f.s.CreateToken(f.ctx, berth.Token{Name: "flow", Prefix: "berth_flow", Role: "admin"}, time.Hour, hash)
	require.NoError(f, err)

	_, err = f.s.CreateSession(f.ctx, token.ID, hash, time.Hour)
	require.NoError(f, err)

	_, noToken := f.s.TokenByHash(f.ctx, hash)
	_, noSession := f.s.SessionByHash(f.ctx, hash)
	_, noCount := f.s.CountTokens(f.ctx)
	require.NoError(f, errors.Join(noToken, noSession, noCount, f.s.DeleteSession(f.ctx, hash)))
	require.NoError(f, f.s.Audit(f.ctx, berth.AuditEntry{Actor: "flow", Action: "POST", Object: "/", IP: "::1", Result: "200"}))

	if err := f.s.RevokeToken(f.ctx, token.ID); err != nil {
		require.Equal(f, berth.KindConflict, berth.KindOf(err), "the last one of an admin")
	}

	_, err = f.s.PutSecret(f.ctx, sealed("flow", "age1flow"), "flow")
	require.NoError(f, err)
	_, err = f.s.GetSecret(f.ctx, "flow")
	require.NoError(f, err)
}

// machine is the reports of a worker and the commands of an operator for a
// host.
func (f *flow) machine() {
	require.NoError(f, f.s.RegisterHost(f.ctx, f.host, "v"))
	_, err := f.s.MachineHosts(f.ctx, berth.Host{ID: uuid.NewString(), MachineID: f.host.MachineID})
	require.NoError(f, err)

	require.NoError(f, errors.Join(
		f.s.SetHostStores(f.ctx, f.host.ID, true), f.s.SetHostCheckpoints(f.ctx, f.host.ID, true),
		f.s.CordonDevice(f.ctx, "flow", "loud"), f.s.ReadyDevice(f.ctx, "flow"), f.s.SetHostState(f.ctx, f.host.ID, berth.HostReady),
		f.s.TellHostImages(f.ctx, f.host.ID, []string{"x"}, true), f.s.RememberImage(f.ctx, "flow", "sha256:x"),
		f.s.StoreAdvice(f.ctx, map[string]berth.Advice{"flow": {}}), f.s.ClearAdvice(f.ctx),
		f.s.TouchHost(f.ctx, f.host.ID, berth.HostFree{MemoryBytes: 64 * gib, Devices: []berth.DeviceFree{{ID: "flow", FreeBytes: 64 * gib}}}, nil),
	))

	_, _, noImage := f.s.RecallImage(f.ctx, "flow")
	_, noPoints := f.s.ListMachine(f.ctx, f.host.ID, time.Hour, time.Minute)
	require.NoError(f, errors.Join(noImage, noPoints))
}

// begin submits a sweep that lists its trials, and has 9 of them ask for a place.
func (f *flow) begin() (requests []berth.PlacementRequest) {
	spec := berth.Spec{
		Name: "flow", Secrets: []berth.SecretMount{{Name: "flow"}}, Command: []string{"run"}, Objective: &berth.Objective{Metric: "acc", Goal: berth.GoalMaximize},
		Parameters: []berth.Parameter{{Name: "x", Type: berth.ParameterInt, Min: new(0.0), Max: new(9.0)}},
	}
	for i := range 10 {
		spec.Enqueue = append(spec.Enqueue, berth.Assignment{"x": berth.IntValue(int64(i))})
	}

	n := berth.NewSweep{ID: f.sweep, Spec: spec, ImageDigest: "x", Planned: 10, CreatedBy: "flow", Route: "POST /sweeps", Key: f.sweep, BodyHash: []byte{1}}
	_, _, err := f.s.CreateSweep(f.ctx, n)
	require.NoError(f, err)

	_, noSubmitted := f.s.SubmittedSweep(f.ctx, n.SubmissionKey())
	_, _, noOpen := f.s.OpenSweeps(f.ctx, "flow", n.Route, "other")
	_, noRun := f.s.BeginSweepRun(f.ctx, f.sweep, "first")
	_, noFollowed := f.s.FollowSweepRun(f.ctx, f.sweep, "first", "second")
	_, noRecords := f.s.ListSweepRecords(f.ctx, nil, time.Time{}, "", 100)
	require.NoError(f, errors.Join(noSubmitted, noOpen, noRun, noFollowed, noRecords))
	require.Equal(f, berth.KindConflict, berth.KindOf(f.s.DeleteSecret(f.ctx, "flow", false)), "the sweep mounts it")

	shape := berth.Shape{ImageDigest: f.sweep, Command: []string{"run"}}

	for number := 1; number <= 9; number++ {
		r := berth.PlacementRequest{
			AttemptID: uuid.NewString(), SweepID: f.sweep, TrialID: uuid.NewString(), WorkflowID: "w", Number: 1, Stage: berth.StageMain,
			Purpose: berth.PurposeRun, ShapeKey: shape.Key(), Demand: berth.Demand{MemoryBytes: gib, CPUMilli: 1000},
		}
		_, _, err := f.s.Suggest(f.ctx, f.sweep, number, 1, false, func(tried berth.Tried) ([]berth.NewTrial, bool, error) {
			return []berth.NewTrial{{ID: r.TrialID, Params: tried.Entries[0], Shape: shape}}, false, nil
		})
		require.NoError(f, err)

		_, noRequest := f.s.RequestPlacement(f.ctx, r)
		_, noSize := f.s.ResizeRequest(f.ctx, r)
		require.NoError(f, errors.Join(noRequest, noSize))

		requests = append(requests, r)
	}

	return requests
}

// attempts places six requests, the first two on a GPU, and ends them in ways that are
// noted apart. The others wait, are set aside and refused.
func (f *flow) attempts(requests []berth.PlacementRequest) {
	for i, r := range requests[:6] {
		p := berth.Placement{HostID: f.host.ID, Demand: r.Demand}
		if i < 2 {
			p.DeviceID, p.Mix, p.Demand.DeviceBytes, p.Demand.Contexts = "flow", berth.Mix{Key: "m", Own: "m"}, gib, 1
			p.Class = f.host.Devices[0].Class()
		}

		placed, err := f.s.Place(f.ctx, map[string]berth.Placement{r.AttemptID: p})
		require.NoError(f, err)
		require.Len(f, placed, 1)
	}

	outcomes := []berth.Result{
		{Outcome: berth.Outcome{Kind: berth.FailureOK, Value: new(0.5)}},
		{Outcome: berth.Outcome{Kind: berth.FailureOK, Value: new(0.4)}, Checkpoint: true},
		{Outcome: berth.Outcome{Kind: berth.FailureInfra}},
		{Outcome: berth.Outcome{Kind: berth.FailureInfra}, ImageMissing: true},
		{Outcome: berth.Outcome{Kind: berth.FailureOK, Value: new(0.3)}, ContainerID: "c"}, // its beginning was not said
	}
	for i, o := range outcomes {
		f.finish(requests[i], o)
	}

	require.NoError(f, errors.Join(
		f.s.AbandonAttempt(f.ctx, requests[5].AttemptID, "gone"), f.s.ReleaseLease(f.ctx, requests[5].AttemptID, "no container"),
		f.s.SetAside(f.ctx, requests[6].AttemptID, "the ledger refuses it"),
		f.s.StoreReasons(f.ctx, map[string]berth.Wait{requests[7].AttemptID: {Reasons: []berth.Rejection{{Reason: "full"}}}}),
		f.s.RefuseRequest(f.ctx, requests[8].AttemptID, []berth.Rejection{{Dimension: berth.DimensionMemory, Never: true}}),
	))

	again := requests[2]
	again.AttemptID, again.Number = uuid.NewString(), 2
	_, err := f.s.RequestPlacement(f.ctx, again) // fences the earlier attempt
	require.NoError(f, err)

	_, err = f.s.Queue(f.ctx, 10_000) // with a host that told its images
	require.NoError(f, err)
}

// finish runs an attempt that was placed to its end.
func (f *flow) finish(r berth.PlacementRequest, o berth.Result) {
	status, err := f.s.PlacementStatus(f.ctx, r.AttemptID)
	require.NoError(f, err)

	if o.Outcome.Kind == berth.FailureOK && o.ContainerID == "" {
		require.NoError(f, errors.Join(
			f.s.NoteWait(f.ctx, r.AttemptID, status.Token, "it pulls"),
			f.s.AttemptRunning(f.ctx, r.AttemptID, status.Token, "c", time.Now().Add(-time.Minute)), f.s.NoteResumed(f.ctx, r.AttemptID, status.Token, "from nothing"),
			f.s.PutMetrics(f.ctx, r.AttemptID, status.Token, []berth.MetricPoint{
				{Name: "acc", Step: 1, Value: 1, Status: berth.MetricFinite, At: time.Now()}, {Name: "old", Step: 1, Value: 1, Status: berth.MetricFinite, At: time.Now()},
			}),
			f.s.DropMetrics(f.ctx, r.AttemptID, status.Token, []string{"old"}),
			f.s.PutLog(f.ctx, r.AttemptID, status.Token, berth.LogPiece{Stream: "stdout", At: time.Now(), Data: []byte("x")}),
			f.s.PutMemory(f.ctx, r.AttemptID, status.Token, []berth.MemoryPoint{{HostBytes: new(int64(gib))}}),
		))

		if status.DeviceID != "" {
			_, err := f.s.MeasureRunning(f.ctx, r.AttemptID, status.Token, berth.Usage{DevicePeakBytes: gib / 2}, gib)
			require.NoError(f, err)
		}
	}

	if o.Outcome.Kind == berth.FailureOK {
		o.Outcome.StartedAt = time.Now().Add(-time.Minute)
		o.Outcome.Usage = berth.Usage{MemoryPeakBytes: gib / 2, DevicePeakBytes: gib / 2, Samples: 60, DeviceSamples: 60, Wall: berth.Duration(time.Minute), CPU: berth.Duration(time.Minute)}
	}

	o.AttemptID, o.TrialID, o.SweepID, o.ShapeKey, o.Token, o.Reserved = r.AttemptID, r.TrialID, r.SweepID, r.ShapeKey, status.Token, r.Demand
	o.Source, o.Proof, o.Outcome.Message, o.Outcome.FinishedAt = berth.FootprintFull, "exited", "flow", time.Now()
	require.NoError(f, f.s.FinishAttempt(f.ctx, o))
}

// files stores an attempt's files.
func (f *flow) files(r berth.PlacementRequest) {
	files := []berth.Artifact{{Path: "a", Bytes: 1, Digest: berth.Digest{1}}, {Path: "b", Bytes: 1, Digest: berth.Digest{2}}}
	require.NoError(f, errors.Join(
		f.s.NoteStoreMark(f.ctx, "flow"), f.s.ClaimFiles(f.ctx, r.AttemptID, files), f.s.FilesStored(f.ctx, r.AttemptID, []string{"a"}),
		f.s.NoteFiles(f.ctx, r.AttemptID, "slow"), f.s.DeferFiles(f.ctx, r.AttemptID, "slow"),
		f.s.SettleFiles(f.ctx, r.AttemptID, berth.FileOutcome{State: berth.FilesStored, LeftOut: 1, Reasons: []berth.LeftOut{{Path: "c", Reason: "large"}}}),
		f.s.RemoveObjects(f.ctx, []berth.Digest{{3}}, func([]berth.Digest) error { return nil }),
	))

	_, noMark := f.s.StoreMarked(f.ctx, "flow")
	_, noUnnamed := f.s.LongUnnamed(f.ctx, []berth.Digest{{3}}, time.Hour)
	_, noSet := f.s.FileSet(f.ctx, r.TrialID, 0)
	_, noList := f.s.ListFiles(f.ctx, r.AttemptID, "", 10)
	_, noFile := f.s.GetFile(f.ctx, r.AttemptID, "a")
	_, _, noMetrics := f.s.ExportMetrics(f.ctx, f.sweep, berth.MetricKey{}, 100)
	require.NoError(f, errors.Join(noMark, noUnnamed, noSet, noList, noFile, noMetrics))
}

// checkpoints stores an attempt's checkpoints.
func (f *flow) checkpoints(r berth.PlacementRequest) {
	status, err := f.s.GetAttempt(f.ctx, r.AttemptID)
	require.NoError(f, err)

	of := berth.AttemptCheckpoint{AttemptID: r.AttemptID, TrialID: r.TrialID, Token: status.Token}

	for n := range 2 { // the second one drops the first
		archive := berth.StoredCheckpoint{Digest: berth.Digest{byte(4 + n)}, Bytes: 1}
		_, noFinish := f.s.FinishCheckpoint(f.ctx, of, archive.Digest)
		require.Equal(f, berth.KindFenced, berth.KindOf(noFinish))

		noBegin := f.s.BeginCheckpoint(f.ctx, of, archive)
		replaced, noFinish := f.s.FinishCheckpoint(f.ctx, of, archive.Digest)
		require.NoError(f, errors.Join(noBegin, noFinish))
		require.Len(f, replaced, n)
	}

	_, err = f.s.EarlierCheckpoints(f.ctx, r.AttemptID)
	require.NoError(f, errors.Join(err, f.s.SettleCheckpoint(f.ctx, of, "")))
}

// installation is a server's own records, and its messages to Temporal and
// browsers.
func (f *flow) installation() {
	now, err := f.s.Installation(f.ctx)
	require.NoError(f, err)
	require.NoError(f, errors.Join(f.s.Holds(f.ctx, now.ID), f.s.BindTemporal(f.ctx), f.s.NoteRetention(f.ctx, ""), f.s.BeginHistory(f.ctx)))

	for range 3 { // as many as are noted
		f.s.NoteRound(f.ctx, "placer", errors.New("flow"))
	}

	f.s.NoteRound(f.ctx, "placer", nil)

	_, notRenewed := f.s.RenewInstallation(f.ctx)
	require.NoError(f, notRenewed)

	_, noAlarm := f.s.SetAlarm(f.ctx, "flow")
	_, noQuiet := f.s.SetAlarm(f.ctx, "")
	_, last, noRange := f.s.EventRange(f.ctx)
	_, noEvents := f.s.ListEvents(f.ctx, last-10, []string{f.sweep}, 100)
	messages, noOutbox := f.s.ClaimOutbox(f.ctx, 10, time.Minute)
	require.NoError(f, errors.Join(noAlarm, noQuiet, noRange, noEvents, noOutbox))

	untried := make([]int64, len(messages))
	for i, m := range messages {
		untried[i] = m.ID
	}

	require.NoError(f, f.s.SettleOutbox(f.ctx, berth.Delivery{Delivered: []int64{-1}, Failed: map[int64]error{-2: errors.New("away")}, Untried: untried}))
}

// end ends the trials and the sweep, as if long ago, and lets limits remove all that is theirs.
func (f *flow) end(requests []berth.PlacementRequest) {
	for i, r := range requests {
		_, err := f.s.SetTrialState(f.ctx, berth.TrialUpdate{TrialID: r.TrialID, SweepID: f.sweep, Number: i + 1, State: berth.TrialCanceled, SweepRun: "first"})
		require.NoError(f, err)
	}

	_, noFirst := f.s.FirstTrialRan(f.ctx, f.sweep)
	_, noFootprint := f.s.FindFootprint(f.ctx, requests[0].ShapeKey)
	_, noEnd := f.s.SetSweepState(f.ctx, f.sweep, berth.SweepSucceeded, "done")
	_, noPast := f.pool.Exec(f.ctx, `UPDATE sweeps SET finished_at = finished_at - interval '30 years' WHERE id = $1`, f.sweep)
	require.NoError(f, errors.Join(noFirst, noFootprint, noEnd, noPast, f.s.ForgetFootprint(f.ctx, requests[0].ShapeKey), f.s.SetHostStores(f.ctx, f.host.ID, false)))

	require.NoError(f, errors.Join(f.s.ExpireOutputs(f.ctx, f.host.ID, []string{requests[0].TrialID}, "old"),
		f.s.OutputsRemoved(f.ctx, f.host.ID, []string{requests[0].AttemptID}, []string{requests[1].AttemptID})))
	_, err := f.s.OutputRemovals(f.ctx, f.host.ID, 10)
	require.NoError(f, err)

	const long = 20 * 365 * 24 * time.Hour

	for _, keep := range []berth.Retention{{Outputs: long}, {Sweeps: long}} { // each finds what the one before leaves
		failed := make(map[string]error)
		for f.s.Retain(f.ctx, keep, failed) {
			require.Empty(f, failed)
		}

		require.Empty(f, failed)
	}

	require.NoError(f, errors.Join(f.s.RemoveHost(f.ctx, f.host.ID, true), f.s.DeleteSecret(f.ctx, "flow", false)))

	_, noDevice := f.pool.Exec(f.ctx, `DELETE FROM devices WHERE id = 'flow'`) // the next run's host has it
	_, noRemovals := f.pool.Exec(f.ctx, `DELETE FROM output_removals WHERE host_id = $1`, f.host.ID)
	require.NoError(f, errors.Join(noDevice, noRemovals))
}
