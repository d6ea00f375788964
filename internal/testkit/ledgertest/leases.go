package ledgertest

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func testRelease(t *testing.T, b *bench) {
	r, _ := b.place(t, 2)
	ctx := t.Context()

	require.NoError(t, b.AbandonAttempt(ctx, r.AttemptID, "host lost"))
	require.Error(t, b.ReleaseLease(ctx, r.AttemptID, ""), "only with proof")
	b.requireReserved(t, 2, 1)

	require.NoError(t, b.ReleaseLease(ctx, r.AttemptID, "no container"))
	require.NoError(t, b.ReleaseLease(ctx, r.AttemptID, "no container"))
	require.NoError(t, b.ReleaseLease(ctx, uuid.NewString(), "no container"))
	b.requireReserved(t, 0, 0)

	leases, err := b.HostLeases(ctx, b.host.ID)
	require.NoError(t, err)
	require.Empty(t, leases)
}

func testLeasesExpire(t *testing.T, b *bench) {
	renewed, token := b.place(t, 1)
	silent, silentToken := b.place(t, 1)
	ctx := t.Context()

	suspects, err := b.SuspectLeases(ctx)
	require.NoError(t, err)
	require.Empty(t, suspects)

	b.Pass(t, berth.LeaseTerm-time.Second)
	require.NoError(t, b.TouchHost(ctx, b.host.ID, berth.HostFree{MemoryBytes: gib}, append(seen(renewed, token),
		berth.SeenAttempt{AttemptID: uuid.NewString(), Token: token},
		berth.SeenAttempt{AttemptID: silent.AttemptID, Token: silentToken - 1}, // a container of an earlier lease
	)))
	b.Pass(t, 2*time.Second)

	suspects, err = b.SuspectLeases(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{silent.AttemptID}, suspects)
	b.requireReserved(t, 2, 2)

	suspects, err = b.SuspectLeases(ctx)
	require.NoError(t, err)
	require.Empty(t, suspects, "once is enough")

	require.NoError(t, b.TouchHost(ctx, b.host.ID, berth.HostFree{MemoryBytes: gib}, seen(silent, silentToken)))

	leases, err := b.HostLeases(ctx, b.host.ID)
	require.NoError(t, err)

	for _, l := range leases {
		require.Equal(t, berth.LeaseHeld, l.State, "seen again")
	}

	require.Equal(t, berth.KindNotFound, berth.KindOf(b.TouchHost(ctx, uuid.NewString(), berth.HostFree{MemoryBytes: gib}, nil)))
}

func testHostLeases(t *testing.T, b *bench) {
	first, firstToken := b.place(t, 1)
	ctx := t.Context()

	b.Pass(t, time.Minute)

	second, secondToken := b.place(t, 1)
	require.NoError(t, b.AttemptRunning(ctx, first.AttemptID, firstToken, "c", noon))
	require.NoError(t, b.AbandonAttempt(ctx, second.AttemptID, "host lost"))

	leases, err := b.HostLeases(ctx, b.host.ID)
	require.NoError(t, err)
	require.Len(t, leases, 2)

	require.GreaterOrEqual(t, leases[0].Age, time.Minute)
	require.Less(t, leases[1].Age, time.Minute)

	leases[0].Age, leases[1].Age = 0, 0
	require.Equal(t, []berth.HostLease{
		{
			AttemptID: first.AttemptID, SweepID: first.SweepID, TrialID: first.TrialID, TrialNumber: leases[0].TrialNumber, Number: 1, State: berth.LeaseHeld, Token: firstToken, Current: firstToken,
			AttemptState: berth.AttemptRunning,
		},
		{
			AttemptID: second.AttemptID, SweepID: second.SweepID, TrialID: second.TrialID, TrialNumber: leases[1].TrialNumber, Number: 1,
			Revivable: true, State: berth.LeaseHeld, Token: secondToken, Current: b.attempt(t, second.AttemptID).Token,
			AttemptState: berth.AttemptAbandoned,
		},
	}, leases)

	leases, err = b.HostLeases(ctx, uuid.NewString())
	require.NoError(t, err)
	require.Empty(t, leases)

	leases, err = b.LeasesOf(ctx, []string{second.AttemptID, uuid.NewString()})
	require.NoError(t, err)
	require.Len(t, leases, 1)
	require.Equal(t, second.AttemptID, leases[0].AttemptID)

	require.NoError(t, b.ReleaseLease(ctx, second.AttemptID, "no container"))

	leases, err = b.LeasesOf(ctx, []string{second.AttemptID})
	require.NoError(t, err)
	require.Empty(t, leases)
}

func testHostComesBack(t *testing.T, b *bench) {
	large, token := b.place(t, 3)
	small, _ := b.place(t, 1)

	b.host.BootID, b.host.MemoryBytes, b.host.CPUMilli, b.host.MaxAttempts = "boot-2", 3*gib, 1000, 1
	require.NoError(t, b.RegisterHost(t.Context(), b.host, "test"))

	b.requireTotals(t, "boot-2", 3, 1000, 1)
	b.requireReserved(t, 4, 2)

	// What fits the totals fits the ledger, once the leases have shrunk to it.
	second := b.ask(t, 1)
	_, err := b.Place(t.Context(), b.here(second))
	require.Equal(t, berth.KindExhausted, berth.KindOf(err), "%v", err)

	require.NoError(t, b.AbandonAttempt(t.Context(), small.AttemptID, "host lost"))
	require.NoError(t, b.ReleaseLease(t.Context(), small.AttemptID, "no container"))

	_, err = b.Place(t.Context(), b.here(second))
	require.Equal(t, berth.KindExhausted, berth.KindOf(err), "3 of 2 GiB are still held: %v", err)

	require.NoError(t, b.FinishAttempt(t.Context(), result(large, token, 1)))

	_, err = b.Place(t.Context(), b.here(b.ask(t, 3)))
	require.Equal(t, berth.KindExhausted, berth.KindOf(err), "the old totals are gone: %v", err)
	b.put(t, second)
	b.requireReserved(t, 1, 1)
	b.requireTotals(t, "boot-2", 3, 1000, 1)

	require.NoError(t, b.TouchHost(t.Context(), b.host.ID, berth.HostFree{MemoryBytes: 3 * gib, DiskBytes: 7 * gib}, nil))

	hosts, err := b.ListHosts(t.Context())
	require.NoError(t, err)
	require.False(t, hosts[0].Late)

	b.Pass(t, berth.HostLateAfter+time.Second)

	hosts, err = b.ListHosts(t.Context())
	require.NoError(t, err)
	require.True(t, hosts[0].Late)
	require.Equal(t, berth.HostReady, hosts[0].State)

	b.Pass(t, berth.HostLostAfter-berth.HostLateAfter)

	hosts, err = b.ListHosts(t.Context())
	require.NoError(t, err)
	require.Equal(t, berth.HostLost, hosts[0].State)
	require.Equal(t, []int64{3 * gib, 7 * gib, gib}, []int64{hosts[0].MemoryFreeBytes, hosts[0].DiskFreeBytes, hosts[0].DiskHeadroomBytes})
}

// requireTotals checks the host's capacity, in gibibytes, thousandths of a core
// and attempts.
func (b *bench) requireTotals(t *testing.T, bootID string, memory, cpu int64, attempts int) {
	t.Helper()

	hosts, err := b.ListHosts(t.Context())
	require.NoError(t, err)
	require.Equal(t, bootID, hosts[0].BootID)
	require.Equal(t, []int64{memory * gib, cpu, int64(attempts)}, []int64{hosts[0].MemoryBytes, hosts[0].CPUMilli, int64(hosts[0].MaxAttempts)})
}
