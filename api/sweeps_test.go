package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/scheduler/memory"
	"github.com/berthml/berth/internal/sweepfile/spec"
	"github.com/berthml/berth/internal/testkit/apitest"
)

func read[T any](t *testing.T, body string) T {
	t.Helper()

	var v T
	require.NoError(t, json.Unmarshal([]byte(body), &v), body)

	return v
}

func TestCreateSweepOnce(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)

	response := r.call("POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: one")
	require.Equal(t, http.StatusCreated, response.StatusCode)

	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)

	made := read[openapi.Sweep](t, string(body))
	require.Equal(t, "/api/v1/sweeps/"+made.ID, response.Header.Get("Location"))
	require.Equal(t, 4, made.Counts.Planned)
	require.Contains(t, made.ImageDigest, "@sha256:")
	require.Equal(t, "local", made.CreatedBy)

	again := r.want(http.StatusOK, "POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: one")
	require.Equal(t, made.ID, read[openapi.Sweep](t, again).ID)

	again = r.want(http.StatusConflict, "POST", "/api/v1/sweeps", apitest.SweepFile+"\n", asYAML, "Idempotency-Key: one")
	require.Equal(t, "E_IDEMPOTENCY", read[openapi.Problem](t, again).Code)

	status, _ := r.text("POST", "/api/v1/sweeps", apitest.SweepFile, "Idempotency-Key: two") // the text shows its format
	require.Equal(t, http.StatusCreated, status)
	require.Equal(t, 3, store.Count("sweeps"))
	require.Contains(t, audits(store)[0], made.ID)
}

func TestLinksToTemporal(t *testing.T) {
	t.Parallel()

	id := apitest.NewID(1)
	r := setup(t, apitest.Sample(t), func(c *api.Config) { c.TemporalUI = "http://localhost:8233/" })

	_, body := r.text("GET", "/api/v1/sweeps/"+id, "")
	require.Equal(t, "http://localhost:8233/namespaces/default/workflows/sweep-"+id, read[openapi.Sweep](t, body).TemporalURL)

	require.Equal(t, "http://localhost:8233/namespaces/default/workflows/sweep-"+id+"%2Ftrial-2", get[openapi.Trial](r, "/api/v1/sweeps/"+id+"/trials/2").TemporalURL)

	_, body = setup(t, apitest.Sample(t)).text("GET", "/api/v1/sweeps/"+id, "")
	require.Empty(t, read[openapi.Sweep](t, body).TemporalURL)
}

func TestImageIsMissing(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	store.ImageErr = &berth.SpecError{Problems: []berth.Problem{{Code: "E_IMAGE_MISSING", Pointer: "/image", Message: "not here"}}}

	body := r.want(http.StatusUnprocessableEntity, "POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: one")
	require.Equal(t, []openapi.ProblemItem{{Code: "E_IMAGE_MISSING", Pointer: "/image", Detail: "not here"}}, read[openapi.Problem](t, body).Errors)

	staged := apitest.SweepFile + "stages: [{name: a, command: [x], image: other:1}]\n"
	store.ImageErrOf = "other:1"
	body = r.want(http.StatusUnprocessableEntity, "POST", "/api/v1/sweeps", staged, asYAML, "Idempotency-Key: two")
	require.Equal(t, "/stages/0/image", read[openapi.Problem](t, body).Errors[0].Pointer)

	status, body := r.text("POST", "/api/v1/sweep-previews", staged, asYAML)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "/stages/0/image", read[openapi.Preview](t, body).Warnings[0].Pointer)

	store.ImageErrOf = ""
	status, body = r.text("POST", "/api/v1/sweep-previews", apitest.SweepFile, asYAML) // is no reason not to preview
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "W_IMAGE_MISSING", read[openapi.Preview](t, body).Warnings[0].Code)
}

// Failure 14: no worker can resolve an image, so a sweep runs its last known
// digest.
func TestImageWhileTemporalIsDown(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)

	down := func(err error) { store.Change(func() { store.ImageErr = err }) }
	down(berth.Errorf(berth.KindUnavailable, "asking Temporal: refused"))

	response := r.call("POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: one")
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Equal(t, "10", response.Header.Get("Retry-After"))

	body := r.want(http.StatusServiceUnavailable, "POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: one")

	problem := read[openapi.Problem](t, body)
	require.Equal(t, "E_UNAVAILABLE", problem.Code)
	require.Contains(t, problem.Detail, "was not stored")
	require.Equal(t, 1, store.Count("sweeps"))

	down(nil)

	body = r.want(http.StatusCreated, "POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: one")
	require.Empty(t, read[openapi.Sweep](t, body).Warnings)

	down(berth.Errorf(berth.KindUnavailable, "asking Temporal: refused"))

	body = r.want(http.StatusCreated, "POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: two")

	sweep := read[openapi.Sweep](t, body)
	require.Contains(t, sweep.ImageDigest, "@sha256:")
	require.Len(t, sweep.Warnings, 1)
	require.Equal(t, "W_IMAGE_OLD", sweep.Warnings[0].Code)

	down(&berth.SpecError{Problems: []berth.Problem{{Code: "E_IMAGE_MISSING", Pointer: "/image", Message: "not here"}}})

	r.want(http.StatusUnprocessableEntity, "POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: three") // a machine that says no is believed
}

func TestRerunFailed(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	store.TrialIs(2, berth.TrialFailed)
	store.TrialIs(3, berth.TrialInfeasible)

	body := r.want(http.StatusCreated, "POST", "/api/v1/sweeps/"+apitest.NewID(1)[:6]+"/rerun-failed", `{"name":"again"}`, asJSON)

	made := read[openapi.Sweep](t, body)
	require.Equal(t, 2, made.Counts.Planned)

	again, err := spec.Decode(made.Spec, "application/json")
	require.NoError(t, err)
	require.Equal(t, "again", again.Name)
	require.Equal(t, berth.SearchList, again.Search.Algorithm)

	for i, width := range []int64{32, 64} {
		require.Equal(t, berth.Assignment{"lr": berth.FloatValue(0.01), "width": berth.IntValue(width)}, again.Enqueue[i])
	}

	body = r.want(http.StatusCreated, "POST", "/api/v1/sweeps/"+apitest.NewID(1)+"/clone", "", "Idempotency-Key: k")

	_, original := r.text("GET", "/api/v1/sweeps/"+apitest.SweepID, "")
	require.JSONEq(t, string(read[openapi.Sweep](t, original).Spec), string(read[openapi.Sweep](t, body).Spec))

	r.want(http.StatusOK, "POST", "/api/v1/sweeps/"+apitest.NewID(1)+"/clone", "", "Idempotency-Key: k")
}

func TestSteering(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	store.SweepIs(berth.SweepPending)
	missing := 3
	store.ControlErr = func() error { // the outbox is not relayed yet
		if missing--; missing >= 0 {
			return berth.Errorf(berth.KindNotFound, "no workflow")
		}

		return nil
	}
	id := apitest.NewID(1)

	for _, verb := range []string{"pause", "resume", "stop"} {
		r.want(http.StatusOK, "POST", "/api/v1/sweeps/"+id+"/"+verb, "")
	}

	body := r.want(http.StatusOK, "PATCH", "/api/v1/sweeps/"+id, `{"max_parallel":3}`, asJSON)
	require.Equal(t, 3, read[openapi.Sweep](t, body).MaxParallel)

	body = r.want(http.StatusAccepted, "POST", "/api/v1/sweeps/"+id+"/cancel", "")
	require.Equal(t, openapi.SweepStateCanceling, read[openapi.Sweep](t, body).State)
	require.Equal(t, []string{"pause " + id, "resume " + id, "stop " + id, "set_max_parallel " + id, "cancel " + id}, store.Updates)
}

func TestNotes(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	store.SweepIs(berth.SweepSucceeded) // a note needs no workflow
	sweep := "/api/v1/sweeps/" + apitest.NewID(1)

	body := r.want(http.StatusOK, "PATCH", sweep, `{"note":"old loss #baseline"}`, asJSON)
	require.Equal(t, "old loss #baseline", read[openapi.Sweep](t, body).Note)
	require.Empty(t, store.Updates)
	require.Len(t, read[openapi.SweepList](t, r.want(http.StatusOK, "GET", "/api/v1/sweeps?name=%23baseline", "")).Data, 1)

	body = r.want(http.StatusOK, "PATCH", sweep+"/trials/1", `{"note":"odd"}`, asJSON)
	require.Equal(t, "odd", read[openapi.Trial](t, body).Note)
	require.Equal(t, "odd", read[openapi.Trial](t, r.want(http.StatusOK, "GET", sweep+"/trials/1", "")).Note)

	r.want(http.StatusBadRequest, "PATCH", sweep, `{}`, asJSON)
	r.want(http.StatusBadRequest, "PATCH", sweep+"/trials/1", `{"note":"`+strings.Repeat("x", 1001)+`"}`, asJSON)
	r.want(http.StatusNotFound, "PATCH", sweep+"/trials/99", `{"note":"x"}`, asJSON)
}

func TestListsHavePages(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	for i := range 7 {
		store.AddSweep(500+i, "more", berth.SweepSucceeded)
	}

	id := apitest.NewID(1)

	for path, want := range map[string]int{
		"/api/v1/sweeps?": 8, "/api/v1/sweeps?state=succeeded,failed&": 8, "/api/v1/sweeps?state=running&": 0,
		"/api/v1/sweeps/" + id + "/trials?": 4, "/api/v1/sweeps/" + id + "/attempts?": 5, "/api/v1/probes?": 2,
	} {
		seen := map[string]bool{}

		for cursor := ""; ; {
			body := r.want(http.StatusOK, "GET", path+"limit=2"+cursor, "")

			page := read[struct {
				Data []struct {
					ID       string `json:"id"`
					ShapeKey string `json:"shape_key"`
				} `json:"data"`
				NextCursor string `json:"next_cursor"`
			}](t, body)
			require.NotNil(t, page.Data)

			for _, row := range page.Data {
				require.False(t, seen[row.ID+row.ShapeKey], path)
				seen[row.ID+row.ShapeKey] = true
			}

			if page.NextCursor == "" {
				break
			}

			cursor = "&cursor=" + page.NextCursor
		}

		require.Len(t, seen, want, path)
	}
}

// asOf is when a report was made.
var asOf = regexp.MustCompile(`"as_of":"[^"]+"`)

// TestAnswers keeps the form of every answer.
func TestAnswers(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	attempt := apitest.AttemptID(1, 1)
	store.AddMetric(attempt, "loss", 1, 0.5, berth.MetricFinite)
	store.AddMetric(attempt, "loss", 2, 0, berth.MetricNaN)
	store.Write(attempt, "epoch 1\n")
	store.Write(attempt, "epoch \xff2\n")
	store.TrialIs(4, berth.TrialWaiting)
	store.Exec(`INSERT INTO placement_requests (attempt_id, sweep_id, trial_id, workflow_id, number, stage, purpose, shape_key, memory_bytes, cpu_milli, requested_at, reasons)
		SELECT gen_random_uuid(), sweep_id, id, 'w', 2, 'main', 'run', shape_key, 1, 1, started_at,
			'[{"host_id": "h", "host_name": "laptop", "dimension": "cpu", "needed": 1000, "reason": "host laptop: needs 1 cores, 0 free"}]' FROM trials WHERE number = 4`)

	sweep := "/api/v1/sweeps/" + apitest.NewID(1)

	var got []string

	for _, path := range []string{
		"/api/v1/sweeps", sweep, sweep + "/trials", sweep + "/trials/4", sweep + "/trials/3/attempts", sweep + "/attempts?limit=1", sweep + "/report?limit=1",
		sweep + "/insight",
		"/api/v1/attempts/" + attempt, "/api/v1/attempts/" + attempt + "/metrics", "/api/v1/attempts/" + attempt + "/log",
		"/api/v1/attempts/" + attempt + "/log?offset=3&limit=8", "/api/v1/probes/aaaa", "/api/v1/hosts", "/api/v1/hosts/laptop",
		"/api/v1/tokens", "/api/v1/me", "/api/v1/server", "/livez", "/readyz",
	} {
		status, body := r.text("GET", path, "")
		got = append(got, fmt.Sprintf("## GET %s: %d", path, status), body)
	}

	status, body := r.text("GET", "/api/v1/attempts/"+attempt+"/log?offset=3", "", "Accept: application/json")
	got = append(got, fmt.Sprintf("## GET log as JSON: %d", status), body)

	for _, path := range []string{"/api/v1/sweep-previews", "/api/v1/sweep-validations"} {
		status, body := r.text("POST", path, apitest.SweepFile, asYAML)
		got = append(got, fmt.Sprintf("## POST %s: %d", path, status), body)
	}

	status, body = r.text("POST", "/api/v1/sweep-validations", "name: 1\n", asYAML)
	got = append(got, fmt.Sprintf("## POST a bad file: %d", status), body)

	store.OnGPU(t)

	status, body = r.text("GET", sweep+"/report?limit=1", "")
	got = append(got, fmt.Sprintf("## GET report of a sweep on a GPU: %d", status), body)

	requireGolden(t, "answers.golden", asOf.ReplaceAllString(lines(got...), `"as_of":"now"`))
}

func TestReadyNamesWhatIsDown(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	store.Close()

	body := r.want(http.StatusServiceUnavailable, "GET", "/readyz", "")
	require.JSONEq(t, `{"ready":false,"parts":{"database":"asking PostgreSQL: closed pool","temporal":"ok"}}`, body)

	r.want(http.StatusOK, "GET", "/livez", "")
}

func TestHealthSaysWhatToDo(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	placerLeads(t, store)

	r.want(http.StatusOK, "GET", "/healthz", "")

	store.Exec("UPDATE hosts SET disk_bytes = disk_free_bytes * 7")

	body := r.want(http.StatusOK, "GET", "/healthz", "") // a disk that will be full is no failure yet
	require.Contains(t, body, `{"ok":true,"warn":true,"part":"disks","what":"host laptop has 202,752 MiB left`)

	store.Exec("UPDATE hosts SET last_seen_at = now() - interval '1 hour'")

	body = r.want(http.StatusServiceUnavailable, "GET", "/healthz", "")
	require.Contains(t, body, `"part":"hosts"`)
	require.Contains(t, body, "start `berth worker` on a machine with Docker")

	store.Close()

	body = r.want(http.StatusServiceUnavailable, "GET", "/healthz", "")
	require.Contains(t, body, "start PostgreSQL")
	require.NotContains(t, body, "laptop", "the ledger cannot be read")
}

// Findings that cannot be read are no good health.
func TestHealthSaysThatItCannotLook(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	store.Exec("ALTER TABLE hosts RENAME TO away")

	body := r.want(http.StatusServiceUnavailable, "GET", "/healthz", "")
	require.Contains(t, body, `"part":"database","what":"answers"`)
	require.Contains(t, body, `"part":"ledger","what":"listing hosts: `)
}

func TestHostsAndProbesChange(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)

	body := r.want(http.StatusOK, "PATCH", "/api/v1/hosts/"+apitest.HostID[:5], `{"state":"draining"}`, asJSON)
	require.Equal(t, "draining", read[openapi.Host](t, body).State)

	r.want(http.StatusNoContent, "DELETE", "/api/v1/probes/aaaa", "")
	require.Equal(t, 1, store.Count("footprints"))

	r.want(http.StatusNotFound, "DELETE", "/api/v1/probes/aaaa", "")
}

// A GPU is cordoned and made ready by its id or a beginning of it that no other has, and
// the audit log has both.
func TestCordonDevice(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	store.AddHost(t, berth.Device{ID: "GPU-11", Mode: berth.SharingMPS}, berth.Device{ID: "GPU-1", Mode: berth.SharingMPS}, berth.Device{ID: "GPU-12", Mode: berth.SharingMPS})

	patch := func(id, body string) (int, string) { return r.text("PATCH", "/api/v1/devices/"+id, body, asJSON) }

	status, body := patch("GPU-12", `{"state":"cordoned","reason":"its fan is loud"}`)
	require.Equal(t, http.StatusOK, status, body)

	device := read[openapi.Device](t, body)
	require.Equal(t, "its fan is loud", device.CordonReason)
	require.NotNil(t, device.CordonedAt)
	require.Equal(t, "local PATCH /api/v1/devices/:id GPU-12 127.0.0.1 200", audits(store)[0])

	_, body = r.text("GET", "/api/v1/hosts", "")
	require.Equal(t, 1, strings.Count(body, `"cordon_reason":"its fan is loud"`))

	status, body = patch("GPU-1", `{"state":"ready"}`)
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, "GPU-1", read[openapi.Device](t, body).ID, "a whole id is no beginning of another")

	status, body = patch("GPU-00", `{"state":"ready"}`)
	require.Equal(t, http.StatusNotFound, status, body)

	status, body = patch("GPU", `{"state":"ready"}`)
	require.Equal(t, http.StatusConflict, status, body)
	require.Contains(t, body, "several GPUs have an id that starts with")

	status, body = patch("GPU-12", `{"state":"draining"}`)
	require.Equal(t, http.StatusBadRequest, status, body)

	store.Exec("UPDATE hosts SET last_seen_at = now() - interval '1 day', removed_at = now()")

	status, body = patch("GPU-", `{"state":"ready"}`)
	require.Equal(t, http.StatusNotFound, status, "of what is removed a whole id is asked for: %s", body)

	status, body = patch("GPU-12", `{"state":"ready"}`) // and its cordon is not removed
	require.Equal(t, http.StatusOK, status, body)
	require.NotContains(t, body, "cordon")
}

// A command for one of two hosts of a name must not reach the other.
func TestHosts_OfOneName(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)

	other := apitest.NewID(101)
	require.NoError(t, store.RegisterHost(t.Context(), berth.Host{ID: other, Name: "laptop", MemoryBytes: 1}, "test"))
	store.Exec("UPDATE hosts SET last_seen_at = now() - interval '1 day' WHERE id = $1", other)

	body := r.want(http.StatusConflict, "PATCH", "/api/v1/hosts/laptop", `{"state":"draining"}`, asJSON)

	for _, said := range []string{"2 hosts are called", apitest.HostID + " (ready, last seen", other + " (lost, last seen", "berth host remove"} {
		require.Contains(t, body, said)
	}

	r.want(http.StatusNoContent, "DELETE", "/api/v1/hosts/"+other, "")

	body = r.want(http.StatusOK, "PATCH", "/api/v1/hosts/laptop", `{"state":"draining"}`, asJSON)
	require.Equal(t, "draining", read[openapi.Host](t, body).State)
}

// Two runs of an attempt may cut its log at different places.
func TestLog_IsWholeWherePiecesOverlap(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	id := apitest.AttemptID(1, 1)
	store.Exec(`INSERT INTO log_chunks (attempt_id, "offset", stream, at, data)
		VALUES ($1, 0, 'stdout', now(), E'one\ntwo\n'), ($1, 4, 'stdout', now(), E'two\nthree\n')`, id)

	for query, want := range map[string]string{"": "one\ntwo\nthree\n", "?offset=5": "wo\nthree\n", "?limit=9": "one\ntwo\nt"} {
		_, body := r.text("GET", "/api/v1/attempts/"+id+"/log"+query, "")
		require.Equal(t, want, body, query)
	}
}

func TestDeleteSweep(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	path := "/api/v1/sweeps/" + apitest.SweepID

	store.SweepIs(berth.SweepRunning)

	body := r.want(http.StatusConflict, "DELETE", path, "")
	require.Contains(t, body, "stop or cancel it first")

	store.SweepIs(berth.SweepCanceled)

	for _, slip := range []string{apitest.SweepID[:1], apitest.SweepID[:7]} {
		body = r.want(http.StatusBadRequest, "DELETE", "/api/v1/sweeps/"+slip, "")
		require.Contains(t, body, "at least the 8 characters")
	}

	r.want(http.StatusOK, "GET", path, "") // a slip deletes nothing

	r.want(http.StatusNoContent, "DELETE", path, "")

	r.want(http.StatusNotFound, "GET", path, "")

	r.want(http.StatusNotFound, "DELETE", path, "")
}

// The answer for one probe names the bottleneck of a program, by the newest attempts and
// the present GPUs. Cores and lists have no bottleneck.
func TestProbe_Diagnosis(t *testing.T) {
	t.Parallel()

	const mib = 1 << 20

	store, r := sampled(t)
	store.OnGPU(t)
	store.Exec("UPDATE devices SET mps_contexts = 44")
	store.Exec(`UPDATE attempts SET framework_peak_bytes = 145 * 1048576, device_peak_bytes = 141450 * 1048576::bigint, device_active_ns = wall_ns / 2, step_ns = 12e6,
		training_peak_bytes = 1048576, device_class = 'NVIDIA H200 (MPS)'`)
	store.Exec(`INSERT INTO device_footprints (shape_key, device_class, source, samples, device_peak_bytes, cpu_milli, device_sm_milli)
		VALUES ($1, 'NVIDIA H200 (MPS)', 'full', 1, 141450 * 1048576::bigint, 1000, 10)`, apitest.SmallShape)

	_, body := r.text("GET", "/api/v1/probes/aaaa", "")
	got := read[openapi.Probe](t, body).Footprints
	require.Nil(t, got[0].Diagnosis)
	require.Nil(t, got[0].DevicePhases)
	require.Zero(t, got[0].DeviceReservedBytes)
	require.Equal(t, memory.ReserveDevice(berth.Footprint{Source: berth.FootprintFull, Samples: 1, DevicePeakBytes: 141_450 * mib}), got[1].DeviceReservedBytes)
	require.Equal(t, &openapi.DevicePhases{TrainingBytes: mib}, got[1].DevicePhases)
	require.InDelta(t, 0.012, got[1].StepSeconds, 1e-9)
	require.Equal(t, "latency_bound", got[1].Diagnosis.Label)
	require.Contains(t, got[1].Diagnosis.Why, "its SMs had work 2 % of the time", "half of the run on the GPU")
	require.Equal(t, "preallocation", got[1].Diagnosis.Advice[0].About)
	require.Contains(t, got[1].Diagnosis.Advice[0].Evidence, "141,450 MiB of the GPU's 143,771 MiB (98 %)")

	_, body = r.text("GET", "/api/v1/probes", "")
	require.NotContains(t, body, "diagnosis")
}

// Threads are whole: a program with cpus 1.5 has two of them, and 1.4 busy cores are no cap
// that it is at.
func TestProbe_DiagnosisOfHalfCores(t *testing.T) {
	t.Parallel()

	for milli, want := range map[int64]string{1500: "its threads being capped to 2", 500: "its threads being capped to 1"} {
		store := apitest.Sample(t)
		store.AddShape(t, apitest.SmallShape, berth.Shape{CPUMilli: milli})
		store.Exec("DELETE FROM footprints")
		store.Exec(`INSERT INTO device_footprints (shape_key, device_class, source, samples, cpu_milli, device_sm_milli)
			VALUES ($1, 'NVIDIA H200', 'full', 1, 1400, 10)`, apitest.SmallShape)

		_, body := setup(t, store).text("GET", "/api/v1/probes/aaaa", "")
		got := read[openapi.Probe](t, body).Footprints[0].Diagnosis
		require.Equal(t, "latency_bound", got.Label)
		require.Contains(t, got.Why, want)
	}
}

// A search learns from earlier sweeps. The error names a sweep that does not exist, or that has no result.
func TestCreateSweep_From(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	store.AddSweep(2, "young", berth.SweepRunning)

	r := setup(t, store)
	file := strings.Replace(apitest.SweepFile, "search: {algorithm: grid}", "search: {algorithm: auto, from: [NAME]}\nlimits: {max_trials: 4}", 1)

	other := strings.ReplaceAll(strings.ReplaceAll(file, "name: lr", "name: rate"), "{{lr}}", "{{rate}}")
	require.NotEqual(t, file, other)

	for _, test := range []struct{ file, name, says string }{
		{file, "absent", `"pointer":"/search/from/0"`},
		{file, "young", `no trial of sweep \"young\" has a value from which a search learns`},
		{other, "digits", `the trials of sweep \"digits\" have other parameters, or other values of them, than this sweep`},
	} {
		status, body := r.text(http.MethodPost, "/api/v1/sweeps", strings.Replace(test.file, "NAME", test.name, 1), "Content-Type: application/yaml", "Idempotency-Key: b")
		require.Equal(t, http.StatusUnprocessableEntity, status, body)
		require.Contains(t, body, "E_FROM")
		require.Contains(t, body, test.says)
	}

	status, body := r.text(http.MethodPost, "/api/v1/sweeps", strings.Replace(file, "NAME", "digits", 1), "Content-Type: application/yaml", "Idempotency-Key: c")
	require.Equal(t, http.StatusCreated, status, body)
	require.Equal(t, 4, store.Count("priors"))

	// A clone learns from the same, although its name is two sweeps' by now.
	warm := read[openapi.Sweep](t, body).ID
	body = r.want(http.StatusCreated, "POST", "/api/v1/sweeps/"+warm+"/clone", "", "Idempotency-Key: d")
	require.NotEqual(t, warm, read[openapi.Sweep](t, body).ID)
	require.Equal(t, 8, store.Count("priors"))
}
