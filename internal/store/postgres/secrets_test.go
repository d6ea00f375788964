package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
)

func sealed(name, key string) berth.SealedSecret {
	return berth.SealedSecret{Name: name, Key: key, Ciphertext: []byte("age-encryption.org/v1\n-> X25519 …")}
}

// Secrets are stored sealed, shown by name, and not deleted under an open
// sweep.
func TestSecrets(t *testing.T) {
	t.Parallel()

	b := setup(t)
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
	b.exec(t, `UPDATE sweeps SET spec = spec::jsonb || '{"secrets": [{"name": "hub", "file": "/a"}, {"name": "disk", "file": "/b"}, {"name": "gone", "file": "/c"}]}'`)
	b.request(t, gib)

	require.Equal(t, []string{"age1disk", "age1new"}, b.queue(t).Waiting[0].SecretKeys)

	// Health reports a secret that its host cannot open.
	require.Equal(t, []string{"disk: no machine opens it", "hub: no machine opens it"}, b.health(t).Unopened)

	for name, keys := range map[string][]string{"a": {"age1disk"}, "b": {"age1new"}, "c": nil} {
		other := b.host
		other.Name, other.SecretKeys = name, keys

		if name != "a" {
			other.ID = uuid.NewString()
		}

		require.NoError(t, b.store.RegisterHost(ctx, other, "test"))
	}

	require.Equal(t, []string{"disk: not opened by b, which has another key", "hub: not opened by a, which has another key"}, b.health(t).Unopened)

	err = b.store.DeleteSecret(ctx, "hub", false)
	require.Equal(t, berth.KindConflict, berth.KindOf(err))
	require.ErrorContains(t, err, "s ("+b.sweep+")")

	require.NoError(t, b.store.DeleteSecret(ctx, "hub", true))
	require.Equal(t, berth.KindNotFound, berth.KindOf(b.store.DeleteSecret(ctx, "hub", true)))

	b.exec(t, `UPDATE sweeps SET state = 'canceled', finished_at = now()`)
	require.NoError(t, b.store.DeleteSecret(ctx, "disk", false), "its sweep has ended")

	b.exec(t, `INSERT INTO secrets (name, ciphertext, key, created_by, updated_by)
		SELECT 's' || n, 'age-encryption.org/v1', 'age1x', 'ann', 'ann' FROM generate_series(1, $1) n`, berth.MaxSecrets)
	_, err = b.store.PutSecret(ctx, sealed("more", "age1new"), "ann")
	require.Equal(t, berth.KindConflict, berth.KindOf(err))
	_, err = b.store.PutSecret(ctx, sealed("s1", "age1new"), "ann")
	require.NoError(t, err, "one that is there can be changed")
}

// blocked returns once this many sessions of the database wait for a lock.
func (b *bundle) blocked(t *testing.T, sessions int) {
	t.Helper()
	require.Eventually(t, func() bool {
		return b.rows(t, "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == sessions
	}, 30*time.Second, time.Millisecond)
}

// locked begins a transaction with a statement, which others wait for until commit.
func (b *bundle) locked(t *testing.T, statement string) (commit func()) {
	t.Helper()

	tx, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }) // else the pool waits for it

	_, err = tx.Exec(t.Context(), statement)
	require.NoError(t, err)

	return func() { require.NoError(t, tx.Commit(t.Context())) }
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

	b := bare(t)
	ctx := t.Context()
	_, err := b.store.PutSecret(ctx, sealed("hub", "age1new"), "ann")
	require.NoError(t, err)

	// A trigger blocks the sweep in the middle of its transaction.
	b.exec(t, `CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN SET LOCAL lock_timeout = 0; PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$;
		CREATE TRIGGER hold BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION hold()`)

	commit := b.locked(t, "SELECT pg_advisory_xact_lock(1)")

	slow, err := postgres.Open(ctx, postgres.Config{URL: b.url, QueryTimeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(slow.Close)

	sweep := mounting("hub")
	stored, deleted := make(chan error, 1), make(chan error, 1)

	go func() {
		_, _, err := slow.CreateSweep(ctx, sweep)
		stored <- err
	}()

	b.blocked(t, 1)

	_, err = b.store.PutSecret(ctx, sealed("hub", "age1new"), "ann")
	require.NoError(t, err, "a new value waits for no sweep")

	go func() { deleted <- patient(func() error { return b.store.DeleteSecret(ctx, "hub", false) }) }()

	b.blocked(t, 2)
	commit()
	require.NoError(t, <-stored)

	err = <-deleted
	require.Equal(t, berth.KindConflict, berth.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "m ("+sweep.ID+")")
}

// A sweep is not stored whose secret is being deleted.
func TestSecrets_ASweepIsStoredWhileOneIsDeleted(t *testing.T) {
	t.Parallel()

	b := bare(t)
	ctx := t.Context()
	_, err := b.store.PutSecret(ctx, sealed("hub", "age1new"), "ann")
	require.NoError(t, err)

	commit := b.locked(t, "DELETE FROM secrets WHERE name = 'hub'")

	sweep := mounting("hub")
	stored := make(chan error, 1)

	go func() {
		stored <- patient(func() error {
			_, _, err := b.store.CreateSweep(ctx, sweep)

			return err
		})
	}()

	b.blocked(t, 1)
	commit()

	err = <-stored
	require.ErrorContains(t, err, `/secrets/0/name: secret "hub" was deleted while the sweep was submitted`)
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))

	_, err = b.store.GetSweep(ctx, sweep.ID)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))
}
