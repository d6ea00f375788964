package apitest

import (
	"crypto/sha256"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// SweepFile is a small valid sweep file: 4 trials in 2 shapes.
const SweepFile = `name: digits
image: berth-examples/digits:1
command: [python3, train.py, "--lr={{lr}}", "--width={{width}}"]
parameters:
  - {name: lr, values: [0.01, 0.1]}
  - {name: width, values: [32, 64], memory: true}
search: {algorithm: grid}
objective: {metric: val_accuracy, goal: maximize}
`

// The keys of the sample's shapes.
const (
	SmallShape = "aaaa1111bbbb2222cccc3333dddd4444eeee5555ffff66660000777711118888"
	largeShape = "bbbb1111bbbb2222cccc3333dddd4444eeee5555ffff66660000777711118888"
)

// Start is when everything in the sample was made.
var Start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// The sample's sweep and host.
var (
	SweepID = NewID(1)
	HostID  = NewID(100)
)

// TrialID is the id of a trial of the sample.
func TrialID(number int) string { return NewID(10 + number) }

// AttemptID is the id of an attempt of the sample.
func AttemptID(trial, number int) string { return NewID(20 + 10*trial + number) }

// sample comes after the sweep, the host and the shapes. A worker answered last
// in a time to come, so that the host is not lost and answers stay as they are.
const sample = `
UPDATE hosts SET last_seen_at = '2100-01-01T12:00:00Z', stores_files = true;
UPDATE sweeps SET state = 'succeeded', created_at = '2026-11-21T12:00:00Z', started_at = '2026-11-21T12:00:00Z', finished_at = '2026-11-21T12:01:32Z';
INSERT INTO trials (id, sweep_id, number, params, shape_key, state, failure_kind, value, origin, created_at, started_at, finished_at)
SELECT md5((10 + n)::text)::uuid, md5('1')::uuid, n, json_build_object('lr', 0.01, 'width', width), key, 'succeeded', 'ok', value, '{"by": "grid"}',
	'2026-11-21T12:00:00Z', '2026-11-21T12:00:00Z', '2026-11-21T12:00:40Z'
FROM (VALUES (1, 32, 0.91), (2, 32, 0.97), (3, 64, 0.95), (4, 64, 0.93)) t (n, width, value)
JOIN shapes ON shape #>> '{values,width}' = width::text;
INSERT INTO attempts (id, trial_id, number, stage, purpose, shape_key, state, host_id, token, failure_kind, memory_bytes, cpu_milli, memory_peak_bytes,
	cpu_ns, wall_ns, samples, placed_at, started_at, finished_at)
SELECT md5((20 + 10 * t + n)::text)::uuid, md5((10 + t)::text)::uuid, n, 'main', purpose, (SELECT shape_key FROM trials WHERE id = md5((10 + t)::text)::uuid), 'finished', md5('100')::uuid, nextval('lease_tokens'), kind,
	reserved * 1048576::bigint, 1000, peak * 1048576::bigint, 30e9, (ends - begins) * 1e9, 10, s + begins * second, s + begins * second, s + ends * second
FROM (VALUES (1, 1, 'probe', 'ok', 4096, 600, 0, 40), (2, 1, 'run', 'ok', 704, 610, 40, 80), (3, 1, 'probe', 'host_oom', 768, 768, 0, 10),
	(3, 2, 'run', 'ok', 1280, 900, 12, 52), (4, 1, 'run', 'ok', 1024, 890, 54, 92)) a (t, n, purpose, kind, reserved, peak, begins, ends),
	(VALUES ('2026-11-21T12:00:00Z'::timestamptz, interval '1 second')) times (s, second);
INSERT INTO footprints (shape_key, source, samples, memory_peak_bytes, cpu_milli, duration_ns, measured_at)
SELECT key, 'full', 3, CASE shape #>> '{values,width}' WHEN '32' THEN 610 ELSE 900 END * 1048576::bigint, 950, 40e9, '2026-11-21T12:00:00Z' FROM shapes;
INSERT INTO rungs (trial_id, rung, sweep_id, step, value, stop, why, at)
SELECT md5('14')::uuid, n, md5('1')::uuid, step, value, false, why, '2026-11-21T12:00:10Z'
FROM (VALUES (0, 1, 0.5, 'its val_accuracy of 0.5 at step 1 is number 1 of 4; the best one goes on'), (1, 3, NULL, 'its attempt had ended')) r (n, step, value, why);
DELETE FROM outbox;
DELETE FROM events`

// Sample is a store with one ended sweep and one host. The sweep has four
// trials in two shapes; one of them ran out of memory once.
func Sample(t testing.TB) *Store {
	t.Helper()

	s := Empty(t)
	s.AddHost(t)

	decoded, err := spec.Decode([]byte(SweepFile), "")
	require.NoError(t, err)

	_, _, err = s.CreateSweep(t.Context(), berth.NewSweep{
		ID: SweepID, Spec: decoded, ImageDigest: "berth-examples/digits@sha256:1", CreatedBy: "local", Planned: 4,
	})
	require.NoError(t, err)

	for key, width := range map[string]int64{SmallShape: 32, largeShape: 64} {
		s.AddShape(t, key, berth.Shape{
			ImageDigest: "berth-examples/digits@sha256:1", Command: []string{"python3", "train.py"}, Stage: berth.StageMain,
			Values: berth.Assignment{"width": berth.IntValue(width)}, CPUMilli: 1000,
		})
	}

	s.Exec(sample)

	return s
}

// AddHost registers a host of two cores and 32 GiB, with these devices.
func (s *Store) AddHost(t testing.TB, devices ...berth.Device) {
	t.Helper()
	require.NoError(t, s.RegisterHost(t.Context(), berth.Host{
		ID: HostID, Name: "laptop", BootID: "boot", CPUMilli: 2000, MemoryBytes: 32 << 30, MemoryHeadroomBytes: 1 << 30,
		MemoryFreeBytes: 30 << 30, DiskFreeBytes: 200 << 30, DiskHeadroomBytes: 2 << 30, Devices: devices,
	}, "test"))
}

// AddShape stores a shape, whose key may be any.
func (s *Store) AddShape(t testing.TB, key string, shape berth.Shape) {
	t.Helper()

	text, err := json.Marshal(shape)
	require.NoError(t, err)
	s.Exec("INSERT INTO shapes (key, shape) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET shape = excluded.shape", key, string(text))
}

// AddSweep stores a copy of the sample's sweep, without trials.
func (s *Store) AddSweep(n int, name string, state berth.SweepState) string {
	s.Exec(`INSERT INTO sweeps (id, name, spec, image_digest, created_by, created_at, state, finished_at)
		SELECT $1, $2, spec, image_digest, 'ci', created_at + $4 * interval '1 second', $3, CASE WHEN $3 = 'succeeded' THEN now() END FROM sweeps WHERE id = $5`,
		NewID(n), name, state, n, SweepID)

	return NewID(n)
}

// SweepIs gives the sample's sweep another state.
func (s *Store) SweepIs(state berth.SweepState) {
	s.Exec("UPDATE sweeps SET state = $1, finished_at = CASE WHEN $2 THEN now() END WHERE id = $3", state, state.Terminal(), SweepID)
}

// TrialIs gives a trial of the sample another state, without a value.
func (s *Store) TrialIs(number int, state berth.TrialState) {
	s.Exec("UPDATE trials SET state = $1, value = NULL, failure_kind = '', finished_at = CASE WHEN $2 THEN finished_at END WHERE id = $3", state, state.Terminal(), TrialID(number))
}

// AttemptRuns lets an attempt of the sample run again, without a lease.
func (s *Store) AttemptRuns(id string) {
	s.Exec("UPDATE attempts SET state = 'running', failure_kind = '', finished_at = NULL WHERE id = $1", id)
}

// AttemptEnds ends it again.
func (s *Store) AttemptEnds(id string) {
	s.Exec("UPDATE attempts SET state = 'finished', failure_kind = 'ok', finished_at = now() WHERE id = $1", id)
}

// OnGPU moves the sample's attempts from its host's cores to an H200.
func (s *Store) OnGPU(t testing.TB) {
	t.Helper()

	gpu := berth.Device{ID: "GPU-1", Model: "NVIDIA H200", Mode: berth.SharingMPS, MemoryBytes: 143_771 << 20, MaxContexts: 48}
	s.AddHost(t, gpu)
	s.Exec("UPDATE hosts SET last_seen_at = '2100-01-01T12:00:00Z'")
	s.Exec("UPDATE attempts SET device_id = $1, device_class = $2, device_bytes = memory_bytes, device_peak_bytes = memory_peak_bytes", gpu.ID, string(gpu.Class()))
}

// AddMetric stores a point of an attempt.
func (s *Store) AddMetric(attemptID, name string, step int64, value float64, status berth.MetricStatus) {
	s.Exec("INSERT INTO metrics (attempt_id, name, step, value, status, at) VALUES ($1, $2, $3, $4, $5, $6)", attemptID, name, step, value, status, Start)
}

// Write appends to the log of an attempt.
func (s *Store) Write(attemptID, text string) {
	s.Exec(`INSERT INTO log_chunks (attempt_id, "offset", stream, at, data)
		SELECT $1::uuid, coalesce(max("offset" + length(data)), 0), 'stdout', $3, $2 FROM log_chunks WHERE attempt_id = $1`, attemptID, []byte(text), Start)
}

// AddFile gives an attempt a stored file.
func (s *Store) AddFile(attemptID, path, content string) {
	digest := berth.Digest(sha256.Sum256([]byte(content)))
	s.Change(func() {
		if s.Objects == nil {
			s.Objects = make(map[berth.Digest]string)
		}

		s.Objects[digest] = content
	})
	s.Exec("INSERT INTO artifacts (attempt_id, path, bytes, sha256, stored_at) VALUES ($1, $2, $3, $4, $5)", attemptID, path, len(content), digest[:], Start)
}

// FilesAre sets the state of an attempt's files, and why it is so.
func (s *Store) FilesAre(attemptID string, state berth.FileState, problem string) {
	s.Exec("UPDATE attempts SET files_state = $2, files_problem = $3 WHERE id = $1", attemptID, state, problem)
}

// Publish publishes an event.
func (s *Store) Publish(t testing.TB, kind, sweepID, subject string, data any) {
	t.Helper()

	text, err := json.Marshal(data)
	require.NoError(t, err)
	s.PublishMany(t, 1, kind, sweepID, subject, string(text))
}

// PublishMany publishes n events with JSON data, whose sequences follow the last one.
func (s *Store) PublishMany(t testing.TB, n int, kind, sweepID, subject, data string) {
	t.Helper()
	s.Exec("INSERT INTO events (kind, sweep_id, subject, data, created_at) SELECT $1, $2, $3, $4, $5 FROM generate_series(1, $6)", kind, sweepID, subject, data, Start, n)

	_, err := s.PublishEvents(t.Context(), n)
	require.NoError(t, err)
}
