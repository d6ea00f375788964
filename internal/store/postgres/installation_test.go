package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

// hold calls lead, which calls its function while it has a lock, and returns once it has.
// The lock is free again some time after stop.
func hold(t *testing.T, lead func(ctx context.Context, held func(context.Context) error) error) (stop func()) {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	held, ended := make(chan struct{}), make(chan struct{})

	go func() {
		defer close(ended)

		_ = lead(ctx, func(ctx context.Context) error {
			close(held)
			<-ctx.Done()

			return ctx.Err()
		})
	}()

	<-held

	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)

	return stop
}

// own holds a host's lock as its worker does.
func (b *bundle) own(t *testing.T, hostID string) (stop func()) {
	t.Helper()

	return hold(t, func(ctx context.Context, held func(context.Context) error) error {
		return b.store.Own(ctx, "host "+hostID, time.Second, held)
	})
}

func TestInstallation(t *testing.T) {
	t.Parallel()

	store := pgtest.Store(t)
	read := func() berth.Installation {
		now, err := store.Installation(t.Context())
		require.NoError(t, err)

		return now
	}

	first := read()
	require.NoError(t, uuid.Validate(first.ID))
	require.Nil(t, first.BoundAt)
	require.NoError(t, store.BindTemporal(t.Context()))

	again := read()
	require.NotNil(t, again.BoundAt)
	require.Equal(t, first.ID, again.ID)

	_, err := store.SetAlarm(t.Context(), "the store of Temporal was lost")
	require.NoError(t, err)

	stop := hold(t, func(ctx context.Context, held func(context.Context) error) error {
		return store.Lead(ctx, "placer", held)
	})
	_, err = store.RenewInstallation(t.Context())
	require.Equal(t, berth.KindConflict, berth.KindOf(err), "a server uses it")
	stop()

	var id string

	require.Eventually(t, func() bool { // PostgreSQL gives the lock back when it hears that the connection has ended
		id, err = store.RenewInstallation(t.Context())

		return err == nil
	}, 10*time.Second, 20*time.Millisecond, "%v", err)
	require.NotEqual(t, first.ID, id)
	require.Equal(t, berth.Installation{ID: id}, read(), "no namespace is bound to it, and no alarm is its own")
}

// A worker asks before each round whether the database is still its own.
func TestHolds(t *testing.T) {
	t.Parallel()

	b := bare(t)
	ours, err := b.store.Installation(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.store.Holds(t.Context(), ours.ID))

	another := b.store.Holds(t.Context(), uuid.NewString())
	require.ErrorContains(t, another, "is of installation "+ours.ID)
	require.Equal(t, berth.KindUnavailable, berth.KindOf(another))

	b.exec(t, "ALTER TABLE leases RENAME TO later; CREATE TABLE leases (id uuid)") // as pg_restore has it before its end
	require.ErrorContains(t, b.store.Holds(t.Context(), ours.ID), "is being restored")

	b.exec(t, "DROP TABLE installation")
	require.ErrorContains(t, b.store.Holds(t.Context(), ours.ID), "is empty or is being restored")
}

func TestSetAlarm(t *testing.T) {
	t.Parallel()

	b := bare(t)

	for _, step := range []struct {
		text    string
		changed bool
	}{{"", false}, {"lost", true}, {"lost", false}, {"", true}} {
		changed, err := b.store.SetAlarm(t.Context(), step.text)
		require.NoError(t, err)
		require.Equal(t, step.changed, changed)
		require.Equal(t, step.text, b.health(t).Alarm)
	}

	require.Equal(t, 2, b.rows(t, "events WHERE kind = 'installation.alarm'"), "it came and went")
}

// One machine's cores are sold once: a second host of it is refused while the
// first is served or holds places.
func TestRegisterHost_OneOfAMachine(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.host.MachineID, b.host.BootID, b.host.DataDir = "docker-1", "boot-1", "/var/lib/berth"
	b.register(t)

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

	stop := b.own(t, b.host.ID)
	refused("has a worker already")
	b.register(t) // the first one itself
	require.NoError(t, second("docker-2", "boot-1"), "another Docker of the same kernel is another machine")
	require.NoError(t, second("docker-1", "boot-2"), "a copy of the machine that runs beside it")
	require.NoError(t, second("", "boot-1"), "it does not say")

	held := b.request(t, gib)
	b.place(t, held)
	stop()

	var hosts []berth.MachineHost

	require.Eventually(t, func() bool { // PostgreSQL takes a moment to end a connection
		var err error
		hosts, err = b.store.MachineHosts(t.Context(), berth.Host{ID: uuid.NewString(), MachineID: "docker-1", BootID: "boot-1"})

		return err == nil && len(hosts) == 1 && !hosts[0].Served
	}, 10*time.Second, 10*time.Millisecond)
	refused("still holds 1 places", "--data-dir /var/lib/berth")
	require.Equal(t, []berth.MachineHost{{ID: b.host.ID, Name: b.host.Name, DataDir: "/var/lib/berth", Attempts: 1}}, hosts)

	b.end(t, held)
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
		b.own(t, h.ID)

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
