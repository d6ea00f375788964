package postgres_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
)

// ledgerTimes are the columns that decide who may do what, and the ways in
// which a statement could take them from outside (rule R9).
var ledgerTimes = regexp.MustCompile(`(?i)\b(expires_at|last_seen_at|released_at|requested_at|decided_at|placed_at|not_before|resolved_at)\s*(=|<|>|<=|>=)\s*@\w+(::\w+)?`)

// Failure 18: a host's clock decides nothing. Every such time is written and
// compared by the database.
func TestQueries_LedgerTimesAreTheDatabases(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob("queries/*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, files)

	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)

		for _, found := range ledgerTimes.FindAllString(string(text), -1) {
			require.True(t, strings.HasSuffix(found, "::interval"), "%s: %s takes a time of the ledger from its caller: use now()", file, found)
		}
	}
}

// What a host with a wrong clock says about its attempts changes no lease.
func TestLeases_ExpireByTheDatabasesClock(t *testing.T) {
	t.Parallel()

	for name, wrong := range map[string]time.Duration{"an hour behind": -time.Hour, "right": 0, "an hour ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			url := pgtest.URL(t)
			b := setupOn(t, url)

			conn, err := pgx.Connect(t.Context(), url)
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close(t.Context()) })

			clock := time.Now().Add(wrong)
			r := b.request(t, gib)
			status := b.place(t, r)
			require.NoError(t, b.store.AttemptRunning(t.Context(), r.AttemptID, status.Token, "c", clock))
			require.NoError(t, b.store.TouchHost(t.Context(), b.host.ID, berth.HostFree{MemoryBytes: gib}, []berth.SeenAttempt{{AttemptID: r.AttemptID, Token: status.Token}}))

			suspects, err := b.store.SuspectLeases(t.Context())
			require.NoError(t, err)
			require.Empty(t, suspects)

			var left time.Duration
			require.NoError(t, conn.QueryRow(t.Context(), `SELECT expires_at - now() FROM leases`).Scan(&left))
			require.InDelta(t, berth.LeaseTerm.Seconds(), left.Seconds(), 30)

			hosts, err := b.store.ListHosts(t.Context())
			require.NoError(t, err)
			require.Equal(t, berth.HostReady, hosts[0].State)

			_, err = conn.Exec(t.Context(), `UPDATE leases SET expires_at = now() - interval '1 second'`) // the database's time passes
			require.NoError(t, err)

			health, err := b.store.Health(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, health.SuspectLeases)

			suspects, err = b.store.SuspectLeases(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{r.AttemptID}, suspects)

			require.NoError(t, b.store.FinishAttempt(t.Context(), result(r, status.Token, berth.Outcome{
				Kind: berth.FailureOK, Value: new(0.5), StartedAt: clock, FinishedAt: clock.Add(time.Second),
				Usage: berth.Usage{MemoryPeakBytes: gib, Samples: 1, Wall: berth.Duration(time.Second)},
			})))

			memory, _ := b.reserved(t)
			require.Zero(t, memory, "a suspect that turns out well is released like any other")
		})
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()

	b := setup(t)

	health, err := b.store.Health(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, health.Hosts)
	require.Equal(t, 1, health.Answering)
	require.Empty(t, health.SilentHosts)
	require.Equal(t, 1, health.OutboxWaiting, "the start of the sweep")
}

// Health names sick GPUs. It lists separately the GPUs that lack only MPS, whose
// MPS daemon is restarted or whose worker no longer hands them out.
func TestHealth_NamesSickGPUs(t *testing.T) {
	t.Parallel()

	b := setupOn(t, pgtest.URL(t))
	gpu := berth.Device{Model: "NVIDIA H200", Mode: berth.SharingTimeSlicing, MPSContexts: 44, MemoryBytes: 8 << 30, FreeBytes: 8 << 30, MaxContexts: 48}
	sound, sick, sliced, gone, starting := gpu, gpu, gpu, gpu, gpu
	sound.ID, sick.ID, sliced.ID, gone.ID, starting.ID = "GPU-1", "GPU-2", "GPU-3", "GPU-4", "GPU-5"
	sick.Problem, sliced.MPSProblem = "XID 48: its memory lost data", "its MPS daemon does not run"
	starting.Problem = berth.MPSStarts + ": it does not answer"

	for _, devices := range [][]berth.Device{{sound, sick, sliced, gone, starting}, {sound, sick, sliced, starting}} {
		b.host.Devices = devices
		require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))
	}

	require.NoError(t, b.store.CordonDevice(t.Context(), "GPU-2", ""))

	health, err := b.store.Health(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{b.host.Name + ", GPU-2: XID 48: its memory lost data; also cordoned by a person"}, health.SickDevices)
	require.Equal(t, []string{b.host.Name + ", GPU-4: " + berth.NotHandedOut}, health.NotHandedOut)
	require.Equal(t, []string{b.host.Name + ", GPU-5: its MPS daemon is started again: it does not answer"}, health.StartingMPS)
	require.Equal(t, []string{b.host.Name + ", GPU-3: its MPS daemon does not run"}, health.Sliced)
}

// What a person says of a GPU outlives its worker's words, also a time in which the
// worker does not find it. It is no sickness.
func TestCordonDevice(t *testing.T) {
	t.Parallel()

	b := setupOn(t, pgtest.URL(t))
	b.host.Devices = []berth.Device{{ID: "GPU-1", Model: "NVIDIA H200", Mode: berth.SharingTimeSlicing, MemoryBytes: 8 << 30, FreeBytes: 8 << 30, MaxContexts: 48}}

	register := func() {
		t.Helper()
		require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))
	}
	device := func() berth.Device {
		t.Helper()

		hosts, err := b.store.ListHosts(t.Context())
		require.NoError(t, err)
		require.Len(t, hosts[0].Devices, 1)

		return hosts[0].Devices[0]
	}

	register()
	require.NoError(t, b.store.CordonDevice(t.Context(), "GPU-1", "its fan is loud"))

	at := device().CordonedAt
	require.WithinDuration(t, time.Now(), *at, time.Minute)

	found := b.host.Devices
	b.host.Devices = nil
	register()
	b.host.Devices = found
	register()
	require.NoError(t, b.store.TouchHost(t.Context(), b.host.ID, berth.HostFree{Devices: []berth.DeviceFree{{ID: "GPU-1", FreeBytes: 7 << 30}}}, nil))
	require.Equal(t, int64(7<<30), device().FreeBytes)
	require.Equal(t, at, device().CordonedAt)
	require.Equal(t, "its fan is loud", device().CordonReason)

	health, err := b.store.Health(t.Context())
	require.NoError(t, err)
	require.Empty(t, health.SickDevices)
	require.Equal(t, []string{b.host.Name + ", GPU-1: cordoned by a person (its fan is loud); `berth device ready GPU-1` lets it take trials again"}, health.CordonedDevices)

	require.NoError(t, b.store.CordonDevice(t.Context(), "GPU-1", ""))
	require.Equal(t, at, device().CordonedAt, "it is so since the first word")
	require.Empty(t, device().CordonReason)

	// The removal of its host leaves it cordoned, and to be found.
	require.NoError(t, b.store.RemoveHost(t.Context(), b.host.ID, true))

	gone, err := b.store.GetDevice(t.Context(), "GPU-1")
	require.NoError(t, err)
	require.Equal(t, []string{"GPU-1", "NVIDIA H200", b.host.ID}, []string{gone.ID, gone.Model, gone.HostID})
	require.Equal(t, at, gone.CordonedAt)
	require.NoError(t, b.store.ReadyDevice(t.Context(), "GPU-1"))
	register()

	_, err = b.store.GetDevice(t.Context(), "GPU-2")
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))

	require.NoError(t, b.store.ReadyDevice(t.Context(), "GPU-1"))
	require.Nil(t, device().CordonedAt)
	require.Equal(t, berth.KindNotFound, berth.KindOf(b.store.CordonDevice(t.Context(), "GPU-2", "")))
	require.Equal(t, berth.KindNotFound, berth.KindOf(b.store.ReadyDevice(t.Context(), "GPU-2")))
}

func TestImages(t *testing.T) {
	t.Parallel()

	store := pgtest.Store(t)

	_, _, err := store.RecallImage(t.Context(), "a:1")
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))

	for _, digest := range []string{"sha256:1", "sha256:2"} {
		require.NoError(t, store.RememberImage(t.Context(), "a:1", digest))

		got, at, err := store.RecallImage(t.Context(), "a:1")
		require.NoError(t, err)
		require.Equal(t, digest, got)
		require.WithinDuration(t, time.Now(), at, time.Minute)
	}
}
