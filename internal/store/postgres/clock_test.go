package postgres_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/pgtest"
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

	for _, wrong := range []time.Duration{-time.Hour, time.Hour} {
		b := setup(t)
		clock := time.Now().Add(wrong)
		r := b.request(t, gib)
		token := b.place(t, r).Token
		require.NoError(t, b.store.AttemptRunning(t.Context(), r.AttemptID, token, "c", clock))
		b.touch(t, berth.HostFree{MemoryBytes: gib}, berth.SeenAttempt{AttemptID: r.AttemptID, Token: token})

		suspects, err := b.store.SuspectLeases(t.Context())
		require.NoError(t, err)
		require.Empty(t, suspects)

		left := number[time.Duration](t, b.pool, `SELECT expires_at - now() FROM leases`)
		require.InDelta(t, berth.LeaseTerm.Seconds(), left.Seconds(), 30)
		require.Equal(t, berth.HostReady, b.first(t).State)

		b.exec(t, `UPDATE leases SET expires_at = now() - interval '1 second'`) // the database's time passes
		require.Equal(t, 1, b.health(t).SuspectLeases)

		suspects, err = b.store.SuspectLeases(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{r.AttemptID}, suspects)

		b.finish(t, r, berth.Outcome{Kind: berth.FailureOK, StartedAt: clock, FinishedAt: clock.Add(time.Second)})

		memory, _ := b.reserved(t)
		require.Zero(t, memory, "a suspect that turns out well is released like any other")
	}
}

// Health names sick GPUs. It lists separately the GPUs that lack only MPS, whose
// MPS daemon is restarted or whose worker no longer hands them out.
func TestHealth_NamesSickGPUs(t *testing.T) {
	t.Parallel()

	b := setup(t)
	sound, sick, sliced, gone, starting := gpu("GPU-1"), gpu("GPU-2"), gpu("GPU-3"), gpu("GPU-4"), gpu("GPU-5")
	sick.Problem, sliced.MPSProblem = "XID 48: its memory lost data", "its MPS daemon does not run"
	starting.Problem = berth.MPSStarts + ": it does not answer"

	for _, devices := range [][]berth.Device{{sound, sick, sliced, gone, starting}, {sound, sick, sliced, starting}} {
		b.host.Devices = devices
		b.register(t)
	}

	require.NoError(t, b.store.CordonDevice(t.Context(), "GPU-2", ""))

	health := b.health(t)
	require.Equal(t, []string{b.host.Name + ", GPU-2: XID 48: its memory lost data; also cordoned by a person"}, health.SickDevices)
	require.Equal(t, []string{b.host.Name + ", GPU-4: " + berth.NotHandedOut}, health.NotHandedOut)
	require.Equal(t, []string{b.host.Name + ", GPU-5: its MPS daemon is started again: it does not answer"}, health.StartingMPS)
	require.Equal(t, []string{b.host.Name + ", GPU-3: its MPS daemon does not run"}, health.Sliced)
}

// What a person says of a GPU outlives its worker's words, also a time in which the
// worker does not find it. It is no sickness.
func TestCordonDevice(t *testing.T) {
	t.Parallel()

	b := setup(t)
	device := func() berth.Device { return b.first(t).Devices[0] }

	b.register(t, "GPU-1")
	require.NoError(t, b.store.CordonDevice(t.Context(), "GPU-1", "its fan is loud"))

	at := device().CordonedAt
	require.WithinDuration(t, time.Now(), *at, time.Minute)

	b.host.Devices = nil
	b.register(t)
	b.register(t, "GPU-1")
	b.touch(t, berth.HostFree{Devices: []berth.DeviceFree{{ID: "GPU-1", FreeBytes: 7 * gib}}})
	require.Equal(t, int64(7*gib), device().FreeBytes)
	require.Equal(t, at, device().CordonedAt)
	require.Equal(t, "its fan is loud", device().CordonReason)

	health := b.health(t)
	require.Empty(t, health.SickDevices)
	require.Equal(t, []string{b.host.Name + ", GPU-1: cordoned by a person (its fan is loud); `berth device ready GPU-1` lets it take trials again"}, health.CordonedDevices)

	require.NoError(t, b.store.CordonDevice(t.Context(), "GPU-1", ""))
	require.Equal(t, at, device().CordonedAt, "it is so since the first word")
	require.Empty(t, device().CordonReason)

	// The removal of its host leaves it cordoned, and to be found.
	require.NoError(t, b.store.RemoveHost(t.Context(), b.host.ID, true))

	gone, err := b.store.GetDevice(t.Context(), "GPU-1")
	require.NoError(t, err)
	require.Equal(t, []string{"GPU-1", h200, b.host.ID}, []string{gone.ID, gone.Model, gone.HostID})
	require.Equal(t, at, gone.CordonedAt)

	b.register(t)
	require.NoError(t, b.store.ReadyDevice(t.Context(), "GPU-1"))
	require.Nil(t, device().CordonedAt)

	_, err = b.store.GetDevice(t.Context(), "GPU-2")
	for _, err := range []error{err, b.store.CordonDevice(t.Context(), "GPU-2", ""), b.store.ReadyDevice(t.Context(), "GPU-2")} {
		require.Equal(t, berth.KindNotFound, berth.KindOf(err))
	}
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
