package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/postgres"
)

func sealed(name, key string) berth.SealedSecret {
	return berth.SealedSecret{Name: name, Key: key, Ciphertext: []byte("age-encryption.org/v1\n-> X25519 …")}
}

// Secrets are stored sealed, shown by name, and not deleted under an open
// sweep.
func TestSecrets(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	ctx := t.Context()

	first, err := b.store.PutSecret(ctx, sealed("hub", "age1old"), "ann")
	require.NoError(t, err)
	require.Equal(t, 1, first.Version)

	second, err := b.store.PutSecret(ctx, sealed("hub", "age1new"), "bob")
	require.NoError(t, err)
	require.Equal(t, berth.Secret{
		Name: "hub", Key: "age1new", Version: 2, CreatedAt: first.CreatedAt, CreatedBy: "ann", UpdatedAt: second.UpdatedAt, UpdatedBy: "bob",
	}, second)
	require.True(t, second.UpdatedAt.After(first.UpdatedAt))

	list, err := b.store.ListSecrets(ctx)
	require.NoError(t, err)
	require.Equal(t, []berth.Secret{second}, list)

	got, err := b.store.GetSecret(ctx, "hub")
	require.NoError(t, err)
	require.Equal(t, sealed("hub", "age1new"), got)

	_, err = b.store.GetSecret(ctx, "hug")
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))

	plain := sealed("plain", "age1new")
	plain.Ciphertext = []byte("hf_0123456789abcdef")
	_, err = b.store.PutSecret(ctx, plain, "ann")
	require.ErrorContains(t, err, "secrets_are_sealed", "the database refuses what is not sealed")
	require.NotContains(t, err.Error(), "0123456789")

	// A waiting sweep that mounts two needs the keys of both, as they are now.
	_, err = b.store.PutSecret(ctx, sealed("disk", "age1disk"), "ann")
	require.NoError(t, err)
	_, err = pool.Exec(ctx, `UPDATE sweeps SET spec = spec::jsonb || '{"secrets": [{"name": "hub", "file": "/a"}, {"name": "disk", "file": "/b"}, {"name": "gone", "file": "/c"}]}'`)
	require.NoError(t, err)
	b.request(t, gib)

	queue, err := b.store.Queue(ctx, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"age1disk", "age1new"}, queue.Waiting[0].SecretKeys)

	// Health reports a secret that its host cannot open.
	health, err := b.store.Health(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"disk: no machine opens it", "hub: no machine opens it"}, health.Unopened)

	b.host.SecretKeys = []string{"age1disk"}
	require.NoError(t, b.store.RegisterHost(ctx, b.host, "test"))
	other := b.host
	other.ID, other.Name, other.SecretKeys = uuid.NewString(), "b", []string{"age1new"}
	require.NoError(t, b.store.RegisterHost(ctx, other, "test"))
	keyless := other
	keyless.ID, keyless.Name, keyless.SecretKeys = uuid.NewString(), "c", nil
	require.NoError(t, b.store.RegisterHost(ctx, keyless, "test"))

	health, err = b.store.Health(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"disk: not opened by b, which has another key", "hub: not opened by a, which has another key"}, health.Unopened)

	err = b.store.DeleteSecret(ctx, "hub", false)
	require.Equal(t, berth.KindConflict, berth.KindOf(err))
	require.ErrorContains(t, err, "s ("+b.sweep+")")

	require.NoError(t, b.store.DeleteSecret(ctx, "hub", true))
	require.Equal(t, berth.KindNotFound, berth.KindOf(b.store.DeleteSecret(ctx, "hub", true)))

	_, err = pool.Exec(ctx, `UPDATE sweeps SET state = 'canceled', finished_at = now()`)
	require.NoError(t, err)
	require.NoError(t, b.store.DeleteSecret(ctx, "disk", false), "its sweep has ended")

	_, err = pool.Exec(ctx, `INSERT INTO secrets (name, ciphertext, key, created_by, updated_by)
		SELECT 's' || n, 'age-encryption.org/v1', 'age1x', 'ann', 'ann' FROM generate_series(1, $1) n`, berth.MaxSecrets)
	require.NoError(t, err)
	_, err = b.store.PutSecret(ctx, sealed("more", "age1new"), "ann")
	require.Equal(t, berth.KindConflict, berth.KindOf(err))
	_, err = b.store.PutSecret(ctx, sealed("s1", "age1new"), "ann")
	require.NoError(t, err, "one that is there can be changed")
}

// waiting returns once this many sessions of the database wait for a lock.
func waiting(t *testing.T, pool *pgxpool.Pool, sessions int) {
	t.Helper()

	require.Eventually(t, func() bool {
		var n int

		err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)

		return err == nil && n == sessions
	}, 30*time.Second, time.Millisecond)
}

// patient repeats a call that waited too long for a lock, as on a loaded
// machine.
func patient(call func() error) error {
	for {
		if err := call(); berth.KindOf(err) != berth.KindUnavailable {
			return err
		}
	}
}

func mounting(secret string) berth.NewSweep {
	return berth.NewSweep{
		ID: uuid.NewString(), ImageDigest: "sha256:x", CreatedBy: "ann",
		Spec: berth.Spec{Name: "m", Secrets: []berth.SecretMount{{Name: secret, File: "/run/secrets/a"}}},
	}
}

// A secret is not deleted under a sweep that is being stored.
func TestSecrets_DeletedWhileASweepIsStored(t *testing.T) {
	t.Parallel()

	at := pgtest.URL(t)
	b, pool := setupOn(t, at), openPool(t, at)
	ctx := t.Context()
	_, err := b.store.PutSecret(ctx, sealed("hub", "age1new"), "ann")
	require.NoError(t, err)

	// A trigger blocks the sweep in the middle of its transaction.
	_, err = pool.Exec(ctx, `CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN SET LOCAL lock_timeout = 0; PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$;
		CREATE TRIGGER hold BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION hold()`)
	require.NoError(t, err)

	tx, err := pool.Begin(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }) // else the pool waits for it

	_, err = tx.Exec(ctx, "SELECT pg_advisory_xact_lock(1)")
	require.NoError(t, err)

	slow, err := postgres.Open(ctx, postgres.Config{URL: at, QueryTimeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(slow.Close)

	sweep := mounting("hub")
	stored, deleted := make(chan error, 1), make(chan error, 1)

	go func() {
		_, _, err := slow.CreateSweep(ctx, sweep)
		stored <- err
	}()

	waiting(t, pool, 1)

	_, err = b.store.PutSecret(ctx, sealed("hub", "age1new"), "ann")
	require.NoError(t, err, "a new value waits for no sweep")

	go func() { deleted <- patient(func() error { return b.store.DeleteSecret(ctx, "hub", false) }) }()

	waiting(t, pool, 2)
	require.NoError(t, tx.Commit(ctx))
	require.NoError(t, <-stored)

	err = <-deleted
	require.Equal(t, berth.KindConflict, berth.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "m ("+sweep.ID+")")
}

// A sweep is not stored whose secret is being deleted.
func TestSecrets_ASweepIsStoredWhileOneIsDeleted(t *testing.T) {
	t.Parallel()

	at := pgtest.URL(t)
	b, pool := setupOn(t, at), openPool(t, at)
	ctx := t.Context()
	_, err := b.store.PutSecret(ctx, sealed("hub", "age1new"), "ann")
	require.NoError(t, err)

	tx, err := pool.Begin(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }) // else the pool waits for it

	_, err = tx.Exec(ctx, "DELETE FROM secrets WHERE name = 'hub'")
	require.NoError(t, err)

	sweep := mounting("hub")
	stored := make(chan error, 1)

	go func() {
		stored <- patient(func() error {
			_, _, err := b.store.CreateSweep(ctx, sweep)

			return err
		})
	}()

	waiting(t, pool, 1)
	require.NoError(t, tx.Commit(ctx))

	err = <-stored
	require.ErrorContains(t, err, `/secrets/0/name: secret "hub" was deleted while the sweep was submitted`)
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))

	_, err = b.store.GetSweep(ctx, sweep.ID)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))
}
