package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/postgres"
)

func TestInstallation(t *testing.T) {
	t.Parallel()

	store := pgtest.Store(t)

	first, err := store.Installation(t.Context())
	require.NoError(t, err)
	require.NoError(t, uuid.Validate(first.ID))
	require.Nil(t, first.BoundAt)

	require.NoError(t, store.BindTemporal(t.Context()))

	again, err := store.Installation(t.Context())
	require.NoError(t, err)
	require.NotNil(t, again.BoundAt)

	again.BoundAt = nil
	require.Equal(t, first, again)

	_, err = store.SetAlarm(t.Context(), "the store of Temporal was lost")
	require.NoError(t, err)

	led := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() {
		ended <- store.Lead(ctx, "placer", func(ctx context.Context) error {
			close(led)
			<-ctx.Done()

			return ctx.Err()
		})
	}()

	<-led

	_, err = store.RenewInstallation(t.Context())
	require.Equal(t, berth.KindConflict, berth.KindOf(err), "a server uses it")

	stop()
	require.ErrorIs(t, <-ended, context.Canceled)

	var id string

	require.Eventually(t, func() bool { // PostgreSQL gives the lock back when it hears that the connection has ended
		id, err = store.RenewInstallation(t.Context())

		return err == nil
	}, 10*time.Second, 20*time.Millisecond, "%v", err)
	require.NotEqual(t, first.ID, id)

	renewed, err := store.Installation(t.Context())
	require.NoError(t, err)
	require.Equal(t, berth.Installation{ID: id}, renewed, "no namespace is bound to it, and no alarm is its own")
}

// A worker asks before each round whether the database is still its own.
func TestHolds(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	store := open(t, url)
	ours, err := store.Installation(t.Context())
	require.NoError(t, err)
	require.NoError(t, store.Holds(t.Context(), ours.ID))

	another := store.Holds(t.Context(), uuid.NewString())
	require.ErrorContains(t, another, "is of installation "+ours.ID)
	require.Equal(t, berth.KindUnavailable, berth.KindOf(another))

	pgtest.Exec(t, url, "ALTER TABLE leases RENAME TO later", "CREATE TABLE leases (id uuid)") // as pg_restore has it before its end
	require.ErrorContains(t, store.Holds(t.Context(), ours.ID), "is being restored")

	pgtest.Exec(t, url, "DROP TABLE installation")
	require.ErrorContains(t, store.Holds(t.Context(), ours.ID), "is empty or is being restored")
}

func TestSetAlarm(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	store, pool := open(t, url), openPool(t, url)

	for _, step := range []struct {
		text    string
		changed bool
	}{{"", false}, {"lost", true}, {"lost", false}, {"", true}} {
		changed, err := store.SetAlarm(t.Context(), step.text)
		require.NoError(t, err)
		require.Equal(t, step.changed, changed)

		health, err := store.Health(t.Context())
		require.NoError(t, err)
		require.Equal(t, step.text, health.Alarm)
	}

	var events int

	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM events WHERE kind = 'installation.alarm'").Scan(&events))
	require.Equal(t, 2, events, "it came and went")
}

// own holds a host's lock as its worker does, until the returned function is
// called.
func own(t *testing.T, store *postgres.Store, hostID string) (stop func()) {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	owned, ended := make(chan struct{}), make(chan struct{})

	go func() {
		defer close(ended)

		_ = store.Own(ctx, "host "+hostID, time.Second, func(ctx context.Context) error {
			close(owned)
			<-ctx.Done()

			return nil
		})
	}()

	<-owned

	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)

	return stop
}

// One machine's cores are sold once: a second host of it is refused while the
// first is served or holds places.
func TestRegisterHost_OneOfAMachine(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.host.MachineID, b.host.BootID, b.host.DataDir = "docker-1", "boot-1", "/var/lib/berth"
	require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))

	second := func(machine, boot string) error {
		h := b.host
		h.ID, h.Name, h.MachineID, h.BootID, h.DataDir = uuid.NewString(), "second", machine, boot, "/home/a/berth"

		return b.store.RegisterHost(t.Context(), h, "test")
	}
	refused := func(why ...string) {
		err := second("docker-1", "boot-1")
		require.Equal(t, berth.KindConflict, berth.KindOf(err))

		for _, text := range append(why, b.host.ID, "/var/lib/berth") {
			require.ErrorContains(t, err, text)
		}
	}

	stop := own(t, b.store, b.host.ID)
	refused("has a worker already")
	require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"), "the first one itself")
	require.NoError(t, second("docker-2", "boot-1"), "another Docker of the same kernel is another machine")
	require.NoError(t, second("docker-1", "boot-2"), "a copy of the machine that runs beside it")
	require.NoError(t, second("", "boot-1"), "it does not say")

	b.place(t, b.request(t, gib))
	stop()

	var hosts []berth.MachineHost

	require.Eventually(t, func() bool { // PostgreSQL takes a moment to end a connection
		var err error
		hosts, err = b.store.MachineHosts(t.Context(), berth.Host{ID: uuid.NewString(), MachineID: "docker-1", BootID: "boot-1"})

		return err == nil && len(hosts) == 1 && !hosts[0].Served
	}, 10*time.Second, 10*time.Millisecond)
	refused("still holds 1 places", "--data-dir /var/lib/berth")
	require.Equal(t, []berth.MachineHost{{ID: b.host.ID, Name: b.host.Name, DataDir: "/var/lib/berth", Attempts: 1}}, hosts)

	leases, err := b.store.HostLeases(t.Context(), b.host.ID)
	require.NoError(t, err)
	require.NoError(t, b.store.AbandonAttempt(t.Context(), leases[0].AttemptID, "lost"))
	require.NoError(t, b.store.ReleaseLease(t.Context(), leases[0].AttemptID, "a test"))
	require.NoError(t, second("docker-1", "boot-1"), "nothing runs for the first any more")
}

// Of two workers that start at once on one machine, one serves.
func TestRegisterHost_TwoAtOnce(t *testing.T) {
	t.Parallel()

	b := setup(t)
	results := make(chan error, 2)

	for range 2 {
		h := b.host
		h.ID, h.MachineID, h.BootID = uuid.NewString(), "docker-9", "boot-1"
		own(t, b.store, h.ID)

		go func() { results <- b.store.RegisterHost(t.Context(), h, "test") }()
	}

	first, second := <-results, <-results
	if first != nil {
		first, second = second, first
	}

	require.NoError(t, first)
	require.Equal(t, berth.KindConflict, berth.KindOf(second))
	require.ErrorContains(t, second, "has a worker already")
}
