package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/api/apitest"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/health"
	"github.com/berthml/berth/internal/memory"
	"github.com/berthml/berth/internal/spec"
)

func read[T any](t *testing.T, body string) T {
	t.Helper()

	var v T
	require.NoError(t, json.Unmarshal([]byte(body), &v), body)

	return v
}

func TestCreateSweepOnce(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	r := setup(t, store)

	response := r.call("POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: one")
	require.Equal(t, http.StatusCreated, response.StatusCode)

	made := store.Sweeps[1]
	require.Equal(t, "/api/v1/sweeps/"+made.ID, response.Header.Get("Location"))
	require.Equal(t, 4, made.Counts.Planned)
	require.Contains(t, made.ImageDigest, "@sha256:")
	require.Equal(t, "local", made.CreatedBy)

	status, body := r.text("POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: one")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, made.ID, read[openapi.Sweep](t, body).ID)

	status, body = r.text("POST", "/api/v1/sweeps", apitest.SweepFile+"\n", asYAML, "Idempotency-Key: one")
	require.Equal(t, http.StatusConflict, status)
	require.Equal(t, "E_IDEMPOTENCY", read[openapi.Problem](t, body).Code)

	status, _ = r.text("POST", "/api/v1/sweeps", apitest.SweepFile, "Idempotency-Key: two") // the text shows its format
	require.Equal(t, http.StatusCreated, status)
	require.Len(t, store.Sweeps, 3)
	require.Equal(t, made.ID, store.Audits[0].Object)
}

func TestLinksToTemporal(t *testing.T) {
	t.Parallel()

	id := apitest.NewID(1)
	r := setup(t, apitest.Sample(), func(c *api.Config) { c.TemporalUI = "http://localhost:8233/" })

	_, body := r.text("GET", "/api/v1/sweeps/"+id, "")
	require.Equal(t, "http://localhost:8233/namespaces/default/workflows/sweep-"+id, read[openapi.Sweep](t, body).TemporalURL)

	_, body = r.text("GET", "/api/v1/sweeps/"+id+"/trials/2", "")
	require.Equal(t, "http://localhost:8233/namespaces/default/workflows/sweep-"+id+"%2Ftrial-2", read[openapi.Trial](t, body).TemporalURL)

	_, body = setup(t, apitest.Sample()).text("GET", "/api/v1/sweeps/"+id, "")
	require.Empty(t, read[openapi.Sweep](t, body).TemporalURL)
}

func TestImageIsMissing(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	store.ImageErr = &berth.SpecError{Problems: []berth.Problem{{Code: "E_IMAGE_MISSING", Pointer: "/image", Message: "not here"}}}
	r := setup(t, store)

	status, body := r.text("POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: one")
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Equal(t, []openapi.ProblemItem{{Code: "E_IMAGE_MISSING", Pointer: "/image", Detail: "not here"}}, read[openapi.Problem](t, body).Errors)

	status, body = r.text("POST", "/api/v1/sweep-previews", apitest.SweepFile, asYAML) // is no reason not to preview
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "W_IMAGE_MISSING", read[openapi.Preview](t, body).Warnings[0].Code)
}

// Failure 14: no worker can resolve an image, so a sweep runs its last known
// digest.
func TestImageWhileTemporalIsDown(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	r := setup(t, store)

	down := func(err error) { store.Change(func() { store.ImageErr = err }) }
	down(berth.Errorf(berth.KindUnavailable, "asking Temporal: refused"))

	response := r.call("POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: one")
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Equal(t, "10", response.Header.Get("Retry-After"))

	status, body := r.text("POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: one")
	require.Equal(t, http.StatusServiceUnavailable, status)

	problem := read[openapi.Problem](t, body)
	require.Equal(t, "E_UNAVAILABLE", problem.Code)
	require.Contains(t, problem.Detail, "was not stored")
	require.Len(t, store.Sweeps, 1)

	down(nil)

	status, body = r.text("POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: one")
	require.Equal(t, http.StatusCreated, status)
	require.Empty(t, read[openapi.Sweep](t, body).Warnings)

	down(berth.Errorf(berth.KindUnavailable, "asking Temporal: refused"))

	status, body = r.text("POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: two")
	require.Equal(t, http.StatusCreated, status)

	sweep := read[openapi.Sweep](t, body)
	require.Equal(t, store.Sweeps[1].ImageDigest, sweep.ImageDigest)
	require.Len(t, sweep.Warnings, 1)
	require.Equal(t, "W_IMAGE_OLD", sweep.Warnings[0].Code)
	require.Contains(t, sweep.Warnings[0].Detail, "12:00:00", "of when it is")

	down(&berth.SpecError{Problems: []berth.Problem{{Code: "E_IMAGE_MISSING", Pointer: "/image", Message: "not here"}}})

	status, _ = r.text("POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: three")
	require.Equal(t, http.StatusUnprocessableEntity, status, "a machine that says no is believed")
}

func TestRerunFailed(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	store.Trials[1].State, store.Trials[2].State = berth.TrialFailed, berth.TrialInfeasible
	r := setup(t, store)

	status, body := r.text("POST", "/api/v1/sweeps/"+apitest.NewID(1)[:6]+"/rerun-failed", `{"name":"again"}`, asJSON)
	require.Equal(t, http.StatusCreated, status, body)

	again := store.Sweeps[1].Spec
	require.Equal(t, "again", again.Name)
	require.Equal(t, berth.SearchList, again.Search.Algorithm)
	require.Equal(t, []berth.Assignment{store.Trials[1].Params, store.Trials[2].Params}, again.Enqueue)
	require.Equal(t, 2, store.Sweeps[1].Counts.Planned)

	document := read[openapi.Sweep](t, body).Spec
	_, err := spec.Decode(document, "application/json")
	require.NoError(t, err)

	status, body = r.text("POST", "/api/v1/sweeps/"+apitest.NewID(1)+"/clone", "", "Idempotency-Key: k")
	require.Equal(t, http.StatusCreated, status, body)
	require.Equal(t, store.Sweeps[0].Spec, store.Sweeps[2].Spec)

	status, _ = r.text("POST", "/api/v1/sweeps/"+apitest.NewID(1)+"/clone", "", "Idempotency-Key: k")
	require.Equal(t, http.StatusOK, status)
}

func TestSteering(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	store.Sweeps[0].State = berth.SweepPending
	missing := 3
	store.ControlErr = func() error { // the outbox is not relayed yet
		if missing--; missing >= 0 {
			return berth.Errorf(berth.KindNotFound, "no workflow")
		}

		return nil
	}
	r := setup(t, store)
	id := apitest.NewID(1)

	for _, verb := range []string{"pause", "resume", "stop"} {
		status, body := r.text("POST", "/api/v1/sweeps/"+id+"/"+verb, "")
		require.Equal(t, http.StatusOK, status, body)
	}

	status, body := r.text("PATCH", "/api/v1/sweeps/"+id, `{"max_parallel":3}`, asJSON)
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, 3, read[openapi.Sweep](t, body).MaxParallel)

	status, body = r.text("POST", "/api/v1/sweeps/"+id+"/cancel", "")
	require.Equal(t, http.StatusAccepted, status, body)
	require.Equal(t, openapi.SweepStateCanceling, read[openapi.Sweep](t, body).State)
	require.Equal(t, []string{"pause " + id, "resume " + id, "stop " + id, "set_max_parallel " + id, "cancel " + id}, store.Updates)
}

func TestListsHavePages(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	for i := range 7 {
		sweep := store.Sweeps[0]
		sweep.ID, sweep.CreatedAt = apitest.NewID(500+i), apitest.Start.Add(time.Duration(i/2)*time.Second)
		store.Sweeps = append(store.Sweeps, sweep)
	}

	r := setup(t, store)
	id := apitest.NewID(1)

	for path, want := range map[string]int{
		"/api/v1/sweeps?": 8, "/api/v1/sweeps?state=succeeded,failed&": 8, "/api/v1/sweeps?state=running&": 0,
		"/api/v1/sweeps/" + id + "/trials?": 4, "/api/v1/sweeps/" + id + "/attempts?": 5, "/api/v1/probes?": 2,
	} {
		seen := map[string]bool{}

		for cursor := ""; ; {
			status, body := r.text("GET", path+"limit=2"+cursor, "")
			require.Equal(t, http.StatusOK, status, body)

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

// TestAnswers keeps the form of every answer.
func TestAnswers(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	attempt := store.Attempts[0].ID
	store.Metrics = map[string][]berth.MetricPoint{attempt: {
		{Name: "loss", Step: 1, Value: 0.5, Status: berth.MetricFinite, At: apitest.Start},
		{Name: "loss", Step: 2, Status: berth.MetricNaN, At: apitest.Start},
	}}
	store.Write(attempt, "epoch 1\n")
	store.Write(attempt, "epoch \xff2\n")
	store.Trials[3].State, store.Trials[3].Value = berth.TrialWaiting, nil
	store.Trials[3].Waiting = []berth.Rejection{{HostID: "h", HostName: "laptop", Dimension: berth.DimensionCPU, Needed: 1000, Reason: "host laptop: needs 1 cores, 0 free"}}

	r := setup(t, store)
	sweep := "/api/v1/sweeps/" + apitest.NewID(1)

	var got []string

	for _, path := range []string{
		"/api/v1/sweeps", sweep, sweep + "/trials", sweep + "/trials/4", sweep + "/trials/3/attempts", sweep + "/attempts?limit=1", sweep + "/report?limit=1",
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

	store.OnGPU()

	status, body = r.text("GET", sweep+"/report?limit=1", "")
	got = append(got, fmt.Sprintf("## GET report of a sweep on a GPU: %d", status), body)

	requireGolden(t, "answers.golden", lines(got...))
}

func TestReadyNamesWhatIsDown(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	store.Down = berth.Errorf(berth.KindUnavailable, "asking PostgreSQL: refused")
	r := setup(t, store)

	status, body := r.text("GET", "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.JSONEq(t, `{"ready":false,"parts":{"database":"asking PostgreSQL: refused","temporal":"ok"}}`, body)

	status, _ = r.text("GET", "/livez", "")
	require.Equal(t, http.StatusOK, status)
}

func TestHealthSaysWhatToDo(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	store.Unwell = health.State{Hosts: 2, Answering: 1}
	r := setup(t, store)

	status, body := r.text("GET", "/healthz", "")
	require.Equal(t, http.StatusOK, status, body)

	store.Change(func() { store.Unwell.Disks = []health.Disk{{Of: "host a", TotalBytes: 100, FreeBytes: 9}} })

	status, body = r.text("GET", "/healthz", "")
	require.Equal(t, http.StatusOK, status, "a disk that will be full is no failure yet: %s", body)
	require.Contains(t, body, `{"ok":true,"warn":true,"part":"disks","what":"host a has 9 bytes left`)

	store.Change(func() { store.Unwell.SilentHosts = []string{"laptop"} })

	status, body = r.text("GET", "/healthz", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, `"part":"hosts"`)
	require.Contains(t, body, "holding places: laptop")

	store.Change(func() { store.Down = berth.Errorf(berth.KindUnavailable, "asking PostgreSQL: refused") })

	status, body = r.text("GET", "/healthz", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "start PostgreSQL")
	require.NotContains(t, body, "laptop", "the ledger cannot be read")
}

// Findings that cannot be read are no good health.
func TestHealthSaysThatItCannotLook(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	store.Unreadable = berth.Errorf(berth.KindUnavailable, "listing hosts: canceling statement due to lock timeout")
	r := setup(t, store)

	status, body := r.text("GET", "/healthz", "")
	require.Equal(t, http.StatusServiceUnavailable, status, body)
	require.Contains(t, body, `"part":"database","what":"answers"`)
	require.Contains(t, body, `"part":"ledger","what":"listing hosts: canceling statement due to lock timeout","next":`)
}

func TestHostsAndProbesChange(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	r := setup(t, store)

	status, body := r.text("PATCH", "/api/v1/hosts/"+apitest.NewID(100)[:5], `{"state":"draining"}`, asJSON)
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, "draining", read[openapi.Host](t, body).State)

	status, body = r.text("DELETE", "/api/v1/probes/aaaa", "")
	require.Equal(t, http.StatusNoContent, status, body)
	require.Len(t, store.Probes, 1)

	status, _ = r.text("DELETE", "/api/v1/probes/aaaa", "")
	require.Equal(t, http.StatusNotFound, status)
}

// A GPU is cordoned and made ready by its id or a beginning of it that no other has, and
// the audit log has both.
func TestCordonDevice(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	store.Hosts[0].Devices = []berth.Device{{ID: "GPU-11", HostID: store.Hosts[0].ID}, {ID: "GPU-1"}, {ID: "GPU-12"}}
	r := setup(t, store)

	patch := func(id, body string) (int, string) { return r.text("PATCH", "/api/v1/devices/"+id, body, asJSON) }

	status, body := patch("GPU-12", `{"state":"cordoned","reason":"its fan is loud"}`)
	require.Equal(t, http.StatusOK, status, body)

	device := read[openapi.Device](t, body)
	require.Equal(t, "its fan is loud", device.CordonReason)
	require.NotNil(t, device.CordonedAt)
	require.Nil(t, store.Hosts[0].Devices[0].CordonedAt)

	require.Equal(t, "PATCH /api/v1/devices/:id", store.Audits[0].Action)
	require.Equal(t, []string{"GPU-12", "200"}, []string{store.Audits[0].Object, store.Audits[0].Result})

	_, body = r.text("GET", "/api/v1/hosts", "")
	require.Contains(t, body, `"cordon_reason":"its fan is loud"`)

	status, body = patch("GPU-1", `{"state":"ready"}`)
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, "GPU-1", read[openapi.Device](t, body).ID, "a whole id is no beginning of another")

	store.Former = []berth.Device{{ID: "GPU-0", HostID: store.Hosts[0].ID, CordonedAt: device.CordonedAt}, {ID: "GPU-9"}}
	status, body = patch("GPU-0", `{"state":"ready"}`)
	require.Equal(t, http.StatusOK, status, body)
	require.Nil(t, store.Former[0].CordonedAt, "its host is removed, and its cordon is not")

	status, body = patch("GPU-", `{"state":"ready"}`)
	require.Equal(t, http.StatusConflict, status, "of what is removed a whole id is asked for: %s", body)

	status, body = patch("GPU-00", `{"state":"ready"}`)
	require.Equal(t, http.StatusNotFound, status, body)

	status, body = patch("GPU", `{"state":"ready"}`)
	require.Equal(t, http.StatusConflict, status, body)
	require.Contains(t, body, "several GPUs have an id that starts with")

	status, body = patch("GPU-12", `{"state":"draining"}`)
	require.Equal(t, http.StatusBadRequest, status, body)

	status, body = patch("GPU-12", `{"state":"ready"}`)
	require.Equal(t, http.StatusOK, status, body)
	require.Nil(t, store.Hosts[0].Devices[2].CordonedAt)
	require.NotContains(t, body, "cordon")
}

func TestRemoveHost(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	r := setup(t, store)

	status, body := r.text("DELETE", "/api/v1/hosts/laptop", "")
	require.Equal(t, http.StatusConflict, status, body)
	require.Contains(t, body, "its worker answers")

	store.Hosts[0].State = berth.HostLost

	status, body = r.text("DELETE", "/api/v1/hosts/laptop", "")
	require.Equal(t, http.StatusNoContent, status, body)
	require.Empty(t, store.Hosts)
}

// A command for one of two hosts of a name must not reach the other.
func TestHosts_OfOneName(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	r := setup(t, store)

	other := store.Hosts[0]
	other.ID, other.State = apitest.NewID(101), berth.HostLost
	store.Hosts = append(store.Hosts, other)

	status, body := r.text("PATCH", "/api/v1/hosts/laptop", `{"state":"draining"}`, asJSON)
	require.Equal(t, http.StatusConflict, status, body)

	for _, said := range []string{"2 hosts are called", store.Hosts[0].ID + " (ready, last seen", other.ID + " (lost, last seen", "berth host remove"} {
		require.Contains(t, body, said)
	}

	require.Equal(t, berth.HostReady, store.Hosts[0].State)

	status, body = r.text("DELETE", "/api/v1/hosts/"+other.ID, "")
	require.Equal(t, http.StatusNoContent, status, body)

	status, body = r.text("PATCH", "/api/v1/hosts/laptop", `{"state":"draining"}`, asJSON)
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, berth.HostDraining, store.Hosts[0].State)
}

// Two runs of an attempt may cut its log at different places.
func TestLog_IsWholeWherePiecesOverlap(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	id := store.Attempts[0].ID
	store.Logs = map[string][]berth.LogPiece{id: {
		{Offset: 0, Stream: berth.Stdout, Data: []byte("one\ntwo\n")},
		{Offset: 4, Stream: berth.Stdout, Data: []byte("two\n")},
		{Offset: 4, Stream: berth.Stdout, Data: []byte("two\nthree\n")},
	}}
	r := setup(t, store)

	for query, want := range map[string]string{"": "one\ntwo\nthree\n", "?offset=5": "wo\nthree\n", "?limit=9": "one\ntwo\nt"} {
		_, body := r.text("GET", "/api/v1/attempts/"+id+"/log"+query, "")
		require.Equal(t, want, body, query)
	}
}

func TestDeleteSweep(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	r := setup(t, store)
	path := "/api/v1/sweeps/" + store.Sweeps[0].ID

	store.Sweeps[0].State = berth.SweepRunning

	status, body := r.text("DELETE", path, "")
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, body, "stop or cancel it first")

	store.Change(func() { store.Sweeps[0].State = berth.SweepCanceled })

	for _, slip := range []string{store.Sweeps[0].ID[:1], store.Sweeps[0].ID[:7]} {
		status, body = r.text("DELETE", "/api/v1/sweeps/"+slip, "")
		require.Equal(t, http.StatusBadRequest, status, slip)
		require.Contains(t, body, "give at least the 8 characters")
	}

	status, _ = r.text("GET", path, "")
	require.Equal(t, http.StatusOK, status, "a slip deletes nothing")

	status, body = r.text("DELETE", path, "")
	require.Equal(t, http.StatusNoContent, status, body)

	status, _ = r.text("GET", path, "")
	require.Equal(t, http.StatusNotFound, status)

	status, _ = r.text("DELETE", path, "")
	require.Equal(t, http.StatusNotFound, status)
}

// The answer for one probe names the bottleneck of a program, by the newest attempts and
// the present GPUs. Cores and lists have no bottleneck.
func TestProbe_Diagnosis(t *testing.T) {
	t.Parallel()

	const mib = 1 << 20

	store := apitest.Sample()
	store.Hosts[0].Devices = []berth.Device{{ID: "GPU-1", Model: "NVIDIA H200", Mode: berth.SharingTimeSlicing, MPSContexts: 44, MemoryBytes: 143_771 * mib}}
	store.Recent = []berth.RecentUsage{{Class: "NVIDIA H200 (MPS)", FrameworkPeakBytes: 145 * mib, DevicePeakBytes: 141_450 * mib, HeldMilli: 500, StepTime: berth.Duration(12 * time.Millisecond), Phases: berth.Phases{TrainingBytes: mib}}}
	store.Probes[0].Footprints = append(store.Probes[0].Footprints, berth.Footprint{
		Class: "NVIDIA H200 (MPS)", Samples: 1, DevicePeakBytes: 141_450 * mib, CPUMilli: 1000, DeviceActivity: berth.DeviceActivity{SMMilli: 10},
	})
	r := setup(t, store)

	_, body := r.text("GET", "/api/v1/probes/aaaa", "")
	got := read[openapi.Probe](t, body).Footprints
	require.Nil(t, got[0].Diagnosis)
	require.Nil(t, got[0].DevicePhases)
	require.Zero(t, got[0].DeviceReservedBytes)
	require.Equal(t, memory.ReserveDevice(store.Probes[0].Footprints[1]), got[1].DeviceReservedBytes)
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
		store := apitest.Sample()
		store.Probes[0].Shape.CPUMilli = milli
		store.Probes[0].Footprints = []berth.Footprint{{Class: "NVIDIA H200", Samples: 1, CPUMilli: 1400, DeviceActivity: berth.DeviceActivity{SMMilli: 10}}}

		_, body := setup(t, store).text("GET", "/api/v1/probes/aaaa", "")
		got := read[openapi.Probe](t, body).Footprints[0].Diagnosis
		require.Equal(t, "latency_bound", got.Label)
		require.Contains(t, got.Why, want)
	}
}
