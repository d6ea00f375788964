package postgres_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/postgres"
	"github.com/berthml/berth/internal/reconcile"
)

// runningOne is a Docker with one container, which has run for an hour. It lists what is
// its worker's, as internal/docker does.
type runningOne struct {
	c       berth.Container
	worker  berth.Owner
	mu      sync.Mutex
	removed bool
}

func (r *runningOne) List(context.Context) ([]berth.Container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.removed || !r.worker.Owns(r.c) {
		return nil, nil
	}

	return []berth.Container{r.c}, nil
}

func (r *runningOne) Stop(context.Context, string, time.Duration) error { return nil }

func (r *runningOne) Remove(context.Context, string) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.removed = true

	return nil
}

// tidy is an executor that has left files of one attempt.
type tidy struct {
	attempt string
	cleaned bool
}

func (*tidy) Busy(string) bool               { return false }
func (*tidy) Untidy() bool                   { return true }
func (d *tidy) Leftovers() ([]string, error) { return []string{d.attempt}, nil }
func (d *tidy) Clean(string) error           { d.cleaned = true; return nil }

// lines are a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.String()
}

// serving is the reconciler of a worker on a database, whose container runs and has its lease.
func serving(t *testing.T, url string) (worker *reconcile.Reconciler, docker *runningOne, files *tidy, said *lines) {
	t.Helper()

	b := setupOn(t, url)
	r := b.request(t, gib)
	placed := b.place(t, r)
	said = &lines{}

	store, err := postgres.Open(t.Context(), postgres.Config{URL: url, Log: slog.New(slog.NewTextHandler(said, nil))})
	require.NoError(t, err)
	t.Cleanup(store.Close)

	installation, err := store.Installation(t.Context())
	require.NoError(t, err)
	store.Bind(installation)

	docker = &runningOne{c: berth.Container{
		ID: "c", Name: "berth-main-x", AttemptID: r.AttemptID, Token: placed.Token, HostID: b.host.ID,
		State: berth.ContainerRunning, CreatedAt: time.Now().Add(-time.Hour),
	}}
	files = &tidy{attempt: r.AttemptID}
	worker = reconcile.New(docker, store, reconcile.Config{
		Host: b.host, Version: "test", Grace: time.Nanosecond, Attempts: files,
		Free: func([]berth.Container) berth.HostFree { return berth.HostFree{MemoryBytes: 8 * gib} },
	}, slog.New(slog.NewTextHandler(t.Output(), nil)))

	require.NoError(t, worker.Round(t.Context()))
	require.False(t, docker.removed, "its lease holds it")
	require.False(t, files.cleaned, "its lease holds them")

	return worker, docker, files, said
}

// `docker compose down --volumes` and `up` on the first machine, before the dump is back, while
// the worker of a further machine runs on: the database at its --postgres-url is another's.
func TestBind_AWorkerMeetsAnotherInstallationAndGoesOn(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	worker, docker, files, said := serving(t, url)

	pgtest.Exec(t, url, "ALTER SCHEMA public RENAME TO kept", "CREATE SCHEMA public")
	require.ErrorContains(t, worker.Round(t.Context()), "is empty or is being restored")

	require.NoError(t, postgres.Migrate(t.Context(), url))

	for range 3 {
		err := worker.Round(t.Context())
		require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "restore it, or correct --postgres-url")
	}

	require.Equal(t, berth.KindUnavailable, berth.KindOf(worker.Register(t.Context())))

	hosts, err := open(t, url).ListHosts(t.Context())
	require.NoError(t, err)
	require.Empty(t, hosts, "it registers nowhere else")
	require.False(t, docker.removed, "the container of the first installation")
	require.False(t, files.cleaned, "the files of the first installation")
	require.Contains(t, said.String(), "level=ERROR")
	require.NotContains(t, said.String(), "level=INFO")

	pgtest.Exec(t, url, "DROP SCHEMA public CASCADE", "ALTER SCHEMA kept RENAME TO public")
	require.NoError(t, worker.Round(t.Context()))
	require.False(t, docker.removed, "it goes on")
	require.False(t, files.cleaned)
	require.Contains(t, said.String(), "level=INFO")
}

// pg_restore fills a table after the other, "installation" before "leases" and "trials", and makes
// foreign keys last.
func TestBind_ADatabaseThatIsBeingRestored(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	worker, docker, files, _ := serving(t, url)

	pgtest.Exec(t, url, "ALTER TABLE leases RENAME TO kept", "CREATE TABLE leases (LIKE kept INCLUDING ALL)")
	require.ErrorContains(t, worker.Round(t.Context()), "is being restored")
	require.False(t, docker.removed)
	require.False(t, files.cleaned)

	pgtest.Exec(t, url, "DROP TABLE leases", "ALTER TABLE kept RENAME TO leases")
	require.NoError(t, worker.Round(t.Context()))
	require.False(t, docker.removed)
}

// copyOf restores a dump of a database beside it. Nobody may be connected to that.
func copyOf(t *testing.T, address string) (copied string) {
	t.Helper()

	u, err := url.Parse(address)
	require.NoError(t, err)

	name := u.Path[1:]
	u.Path = "/postgres"
	pgtest.Exec(t, u.String(), "CREATE DATABASE "+name+"_copy TEMPLATE "+name)
	u.Path = "/" + name + "_copy"

	return u.String()
}

// A dump is restored beside the database in use, and the drill has a worker on the machine
// that people have. Docker has a container there that began since the dump.
func TestBind_ADrillsWorkerOnTheSameDocker(t *testing.T) {
	t.Parallel()

	address := pgtest.URL(t)
	copied := copyOf(t, address)

	original := setupOn(t, address)
	r := original.request(t, gib)
	placed := original.place(t, r)

	ours, err := original.store.Installation(t.Context())
	require.NoError(t, err)

	drill := open(t, copied)
	theirs, err := drill.Installation(t.Context())
	require.NoError(t, err)
	require.Equal(t, ours.ID, theirs.ID)
	require.NotEqual(t, ours.Database, theirs.Database)

	drill.Bind(theirs)

	for of, label := range map[string]string{"this version": ours.Database, "the version before": ""} {
		docker := &runningOne{
			c: berth.Container{
				ID: "c", Name: "berth-main-x", AttemptID: r.AttemptID, Token: placed.Token, HostID: original.host.ID, Installation: ours.ID, Database: label,
				State: berth.ContainerRunning, CreatedAt: time.Now().Add(-time.Hour),
			},
			worker: berth.Owner{HostID: uuid.NewString(), Installation: theirs.ID, Database: theirs.Database},
		}

		host := original.host
		host.ID, host.Name = docker.worker.HostID, "drill of "+of // with a --data-dir of its own: another's is refused (cmd/berth)

		worker := reconcile.New(docker, drill, reconcile.Config{
			Host: host, Version: "test", Grace: time.Nanosecond,
			Free: func([]berth.Container) berth.HostFree { return berth.HostFree{MemoryBytes: 8 * gib} },
		}, slog.New(slog.NewTextHandler(t.Output(), nil)))

		require.NoError(t, worker.Register(t.Context()))
		require.NoError(t, worker.Round(t.Context()))
		require.False(t, docker.removed, "the drill's worker removed a container of %s", of)
	}
}

// A dump that was made while a trial ran replaces its original for good, and the data directory
// of the machine was emptied: the database knows whose the container is that still runs there.
func TestInstallation_ACopyKnowsWhatItReplaces(t *testing.T) {
	t.Parallel()

	address := pgtest.URL(t)
	b := setupOn(t, address)
	r := b.request(t, gib)
	placed := b.place(t, r)
	require.NoError(t, b.store.AttemptRunning(t.Context(), r.AttemptID, placed.Token, "c", time.Now()))

	before, err := b.store.Installation(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.store.OwnDatabase(t.Context(), before.Database, "")) // as a process does that binds Temporal
	b.store.Close()

	store := open(t, copyOf(t, address))
	now, err := store.Installation(t.Context())
	require.NoError(t, err)
	require.False(t, now.Own(), "a drill")
	require.Empty(t, now.Replaced())

	require.NoError(t, store.OwnDatabase(t.Context(), now.Database, "")) // as berth adopt-temporal --replace-original
	now, err = store.Installation(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{before.Database}, now.Replaced())

	docker := &runningOne{
		c: berth.Container{
			ID: "c", Name: "berth-main-x", AttemptID: r.AttemptID, Token: placed.Token, HostID: b.host.ID, Installation: before.ID, Database: before.Database,
			State: berth.ContainerRunning, CreatedAt: time.Now().Add(-time.Hour),
		},
		worker: berth.Owner{HostID: b.host.ID, Installation: now.ID, Database: now.Database, Original: true, Replaced: now.Replaced()}, // cmd/berth, claim of an empty directory
	}
	worker := reconcile.New(docker, store, reconcile.Config{
		Host: b.host, Version: "test", Grace: time.Nanosecond,
		Free: func([]berth.Container) berth.HostFree { return berth.HostFree{MemoryBytes: 8 * gib} },
	}, slog.New(slog.NewTextHandler(t.Output(), nil)))

	rounds := func() (memory int64) {
		for range 3 {
			require.NoError(t, worker.Round(t.Context()))
		}

		memory, _ = (&bundle{store: store}).reserved(t)

		return memory
	}

	require.NoError(t, worker.Register(t.Context()))
	require.Equal(t, int64(gib), rounds())
	require.False(t, docker.removed, "it is adopted")

	require.NoError(t, store.AbandonAttempt(t.Context(), r.AttemptID, "over"))
	require.Equal(t, int64(gib), rounds(), "its place is not free while it runs")
	require.False(t, docker.removed)
}

// Each database that replaced another knows all before it, the newest first.
func TestOwnDatabase(t *testing.T) {
	t.Parallel()

	store := pgtest.Store(t)

	for _, step := range []struct {
		database, replaced string
		want               []string
	}{
		{"", "", nil}, // PostgreSQL hides it
		{"c/1", "", []string{"c/1"}},
		{"c/1", "c/1", []string{"c/1"}},
		{"c/2", "c/1", []string{"c/2", "c/1"}},
		{"c/3", "", []string{"c/3", "c/2", "c/1"}},
		{"c/1", "c/4", []string{"c/1", "c/4", "c/3", "c/2"}}, // back to the first, which a fourth had replaced
	} {
		require.NoError(t, store.OwnDatabase(t.Context(), step.database, step.replaced))

		i, err := store.Installation(t.Context())
		require.NoError(t, err)
		require.Equal(t, step.want, i.Databases)
	}
}

// Under a worker that runs, the database is replaced by a copy that was restored from a dump
// of before its container began: nobody has said yet that this copy is the one.
func TestBind_AWorkerMeetsARestoredCopy(t *testing.T) {
	t.Parallel()

	address := pgtest.URL(t)
	copied := copyOf(t, address)
	worker, docker, files, said := serving(t, address)

	name, copiedName := databaseOf(address), databaseOf(copied)
	admin := strings.Replace(address, "/"+name, "/postgres", 1)
	swap := func(aside, there string) {
		pgtest.Exec(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname IN ('"+name+"', '"+there+"')",
			"ALTER DATABASE "+name+" RENAME TO "+aside, "ALTER DATABASE "+there+" RENAME TO "+name)
	}
	swap(name+"_aside", copiedName)

	for range 3 {
		err := worker.Round(t.Context())
		require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "another copy of its database")
		require.ErrorContains(t, err, "berth adopt-temporal --replace-original")
	}

	require.False(t, docker.removed)
	require.False(t, files.cleaned)
	require.Contains(t, said.String(), "level=ERROR")

	swap(copiedName, name+"_aside")
	require.NoError(t, worker.Round(t.Context()), "it goes on")
	require.False(t, docker.removed)
}

// A pool that lends no dead connection serves again at once.
func TestBind_ConnectionsThatDied(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	worker, docker, _, _ := serving(t, url)

	for range 3 {
		pgtest.Exec(t, url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		require.NoError(t, worker.Round(t.Context()))
		require.False(t, docker.removed)
	}
}
