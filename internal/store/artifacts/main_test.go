package artifacts_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/artifacts"
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childURL) != "" {
		child()
	}

	pgtest.Main(m)
}

const gib = 1 << 30

// files are directories of attempts below a directory.
type files struct {
	dir  string
	busy map[string]bool
}

func (f *files) out(attempt string) string { return filepath.Join(f.dir, attempt) }

func (f *files) OpenOutputs(attempt string) (*os.Root, error) {
	if f.busy[attempt] {
		return nil, berth.Errorf(berth.KindConflict, "it runs")
	}

	root, err := os.OpenRoot(f.out(attempt))
	if os.IsNotExist(err) {
		return nil, berth.Errorf(berth.KindNotFound, "there is no directory")
	}

	return root, err
}

// bench is a real database with a host and a sweep, a store in a directory, and
// an uploader of the host.
type bench struct {
	t        *testing.T
	url      string
	db       *postgres.Store
	host     string
	sweep    string
	trials   int
	storeDir string
	store    *artifacts.Store
	files    *files
	short    bool            // the ended attempt is a short probe
	session  *pgtest.Session // of sql
	uploader *artifacts.Uploader
}

func setup(t *testing.T) *bench {
	t.Helper()

	url := pgtest.URL(t)
	db, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	require.NoError(t, err)
	t.Cleanup(db.Close)

	b := &bench{t: t, url: url, db: db, host: uuid.NewString(), sweep: uuid.NewString(), storeDir: filepath.Join(t.TempDir(), "store")}
	require.NoError(t, b.db.RegisterHost(t.Context(), berth.Host{
		ID: b.host, Name: "a", BootID: "boot", CPUMilli: 64_000, MemoryBytes: 64 * gib, MemoryFreeBytes: 64 * gib,
	}, "test"))

	_, _, err = b.db.CreateSweep(t.Context(), berth.NewSweep{
		ID: b.sweep, Spec: berth.Spec{Name: "s", Objective: &berth.Objective{Metric: "acc", Goal: berth.GoalMaximize}}, ImageDigest: "sha256:x", CreatedBy: "local",
	})
	require.NoError(t, err)

	b.store = b.open(b.storeDir, "one")
	b.files = &files{dir: filepath.Join(t.TempDir(), "data"), busy: make(map[string]bool)}
	require.NoError(t, os.Mkdir(b.files.dir, 0o750))
	require.NoError(t, os.WriteFile(b.mark(), nil, 0o600))

	hourAgo := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(b.mark(), hourAgo, hourAgo))
	b.uploader = b.newUploader(b.db)

	return b
}

// sql is the test's own connection to the database.
func (b *bench) sql() *pgtest.Session {
	b.t.Helper()

	if b.session == nil {
		b.session = pgtest.Connect(b.t, b.url)
	}

	return b.session
}

// mark is in the data directory of the uploader's host.
func (b *bench) mark() string { return filepath.Join(b.files.dir, "mark") }

// open opens the store for the database in use.
func (b *bench) open(where, installation string) *artifacts.Store {
	b.t.Helper()

	store, err := artifacts.Open(b.t.Context(), where, installation, b.db)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { require.NoError(b.t, store.Close()) })

	return store
}

func (b *bench) newUploader(ledger artifacts.Ledger) *artifacts.Uploader {
	return &artifacts.Uploader{
		Ledger: ledger, Files: b.files, Store: b.store, HostID: b.host, Mark: b.mark(), Every: time.Millisecond, Log: slog.New(slog.DiscardHandler),
	}
}

// ended is a trial with one attempt that has ended and written these files.
func (b *bench) ended(content map[string]string) (trial, attempt string) {
	b.t.Helper()

	ctx := b.t.Context()
	b.trials++

	shape := berth.Shape{ImageDigest: "sha256:x", Command: []string{"run"}}
	trial, attempt = uuid.NewString(), uuid.NewString()

	_, _, err := b.db.Suggest(ctx, b.sweep, b.trials, 1, berth.SearchNeeds{}, func(berth.Tried) ([]berth.NewTrial, bool, error) {
		return []berth.NewTrial{{ID: trial, Params: berth.Assignment{"lr": berth.FloatValue(1)}, Shape: shape}}, false, nil
	})
	require.NoError(b.t, err)

	request := b.request(trial, 1)
	request.AttemptID, request.ShapeKey = attempt, shape.Key()

	if b.short {
		request.Purpose, request.Short = berth.PurposeProbe, true
	}

	token := b.place(request, b.host)
	require.NoError(b.t, b.db.AttemptRunning(ctx, attempt, token, "c", time.Now()))

	b.write(attempt, content)
	require.NoError(b.t, b.db.FinishAttempt(ctx, berth.Result{
		AttemptID: attempt, TrialID: trial, SweepID: b.sweep, ShapeKey: shape.Key(), Token: token, Reserved: request.Demand,
		Outcome: berth.Outcome{Kind: berth.FailureOK, Message: "finished", FinishedAt: time.Now()}, Source: berth.FootprintFull, Proof: "container exited",
	}))

	return trial, attempt
}

// request asks for a place for a new attempt of a trial.
func (b *bench) request(trial string, number int) berth.PlacementRequest {
	return berth.PlacementRequest{
		AttemptID: uuid.NewString(), SweepID: b.sweep, TrialID: trial, WorkflowID: "w", Number: number, Stage: berth.StageMain,
		Purpose: berth.PurposeRun, ShapeKey: "s", Demand: berth.Demand{MemoryBytes: gib, CPUMilli: 1000},
	}
}

// place has an attempt placed on a host.
func (b *bench) place(request berth.PlacementRequest, host string) (token int64) {
	b.t.Helper()

	_, err := b.db.RequestPlacement(b.t.Context(), request)
	require.NoError(b.t, err)

	placed, err := b.db.Place(b.t.Context(), map[string]berth.Placement{request.AttemptID: {HostID: host, Demand: request.Demand}})
	require.NoError(b.t, err)
	require.Equal(b.t, []string{request.AttemptID}, placed)

	status, err := b.db.PlacementStatus(b.t.Context(), request.AttemptID)
	require.NoError(b.t, err)

	return status.Token
}

func (b *bench) write(attempt string, content map[string]string) {
	b.t.Helper()
	require.NoError(b.t, os.MkdirAll(b.files.out(attempt), 0o700))

	for path, text := range content {
		full := filepath.Join(b.files.out(attempt), path)
		require.NoError(b.t, os.MkdirAll(filepath.Dir(full), 0o700))
		require.NoError(b.t, os.WriteFile(full, []byte(text), 0o600))
	}
}

// retain removes the rows that are over their limit.
func (b *bench) retain() {
	b.t.Helper()

	for failed := make(map[string]error); b.db.Retain(b.t.Context(), berth.Retention{}, failed); {
		require.Empty(b.t, failed)
	}
}

func (b *bench) deleteSweep() {
	b.t.Helper()

	_, err := b.db.SetSweepState(b.t.Context(), b.sweep, berth.SweepStopped, "")
	require.NoError(b.t, err)
	require.NoError(b.t, b.db.DeleteSweep(b.t.Context(), b.sweep))
	b.retain()
}

func (b *bench) set(trial string) berth.FileSet {
	b.t.Helper()

	set, err := b.db.FileSet(b.t.Context(), trial, 0)
	require.NoError(b.t, err)

	return set
}

// stored reads everything of an attempt back, by the ledger and from the store,
// and holds each file to its digest.
func (b *bench) stored(attempt string) map[string]string {
	b.t.Helper()

	content := make(map[string]string)

	for after := ""; ; {
		page, err := b.db.ListFiles(b.t.Context(), attempt, after, 300)
		require.NoError(b.t, err)

		for _, f := range page {
			content[f.Path], after = b.read(f), f.Path
		}

		if len(page) < 300 {
			return content
		}
	}
}

func (b *bench) read(f berth.Artifact) string {
	b.t.Helper()

	r, err := b.store.Read(b.t.Context(), f.Digest, 0, -1)
	require.NoError(b.t, err)

	var text bytes.Buffer

	_, err = text.ReadFrom(r)
	require.NoError(b.t, err)
	require.NoError(b.t, r.Close())
	require.Equal(b.t, f.Bytes, int64(text.Len()))
	require.Equal(b.t, f.Digest, berth.Digest(sha256.Sum256(text.Bytes())))

	return text.String()
}

// objects are the files of the store, by their path.
func (b *bench) objects() []string {
	b.t.Helper()

	var names []string

	require.NoError(b.t, filepath.WalkDir(filepath.Join(b.storeDir, "sha256"), func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, filepath.Base(path))
		}

		return nil
	}))

	return names
}

func (b *bench) look(ctx context.Context) { b.t.Helper(); require.NoError(b.t, b.uploader.Look(ctx)) }
