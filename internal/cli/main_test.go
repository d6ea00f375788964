package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/agent/secrets"
	"github.com/berthml/berth/internal/testkit/apitest"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

var update = flag.Bool("update", false, "rewrite testdata")

func TestMain(m *testing.M) { pgtest.Main(m) }

// serve runs the real API over an store and returns its URL.
func serve(t *testing.T, store *apitest.Store) string {
	t.Helper()

	return serveWith(t, store, api.Limits{})
}

func serveWith(t *testing.T, store *apitest.Store, limits api.Limits) string {
	t.Helper()

	key := filepath.Join(t.TempDir(), "key")
	_, err := secrets.Make(key)
	require.NoError(t, err)

	keys, err := secrets.Read(key)
	require.NoError(t, err)

	return "http://" + run(t, store, keys, api.Config{Limits: limits})
}

// run serves the store on a free port until the test ends, and returns its address.
func run(t *testing.T, store *apitest.Store, keys *secrets.Keys, config api.Config) string {
	t.Helper()

	deps := api.Deps{Store: store.Store, Temporal: store, Objects: store, Keys: keys, Log: slog.New(slog.DiscardHandler)}
	config.Address = "127.0.0.1:0"

	server, err := api.New(deps, config)
	require.NoError(t, err)
	require.NoError(t, server.Listen(t.Context()))

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)

	go func() { done <- server.Run(ctx) }()

	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})

	return server.Addr()
}

// outcome is a command's output and exit code.
type outcome struct {
	stdout, stderr string
	code           int
	err            error
}

// execute runs a command as the binary would.
func execute(ctx context.Context, server string, args ...string) outcome {
	return executeTo(ctx, &page{}, server, args...)
}

// succeed runs a command that ends well.
func succeed(t *testing.T, server string, args ...string) outcome {
	t.Helper()

	result := execute(t.Context(), server, args...)
	require.Equal(t, ExitOK, result.code, result.stderr)

	return result
}

// sampled serves the sample.
func sampled(t *testing.T) (*apitest.Store, string) {
	t.Helper()

	store := apitest.Sample(t)

	return store, serve(t, store)
}

// page is a command's output, readable while it runs.
type page struct {
	mu   sync.Mutex
	text strings.Builder
}

func (p *page) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.text.Write(data)
}

func (p *page) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.text.String()
}

// executeTo is execute with standard error on a page.
func executeTo(ctx context.Context, errs *page, server string, args ...string) outcome {
	return executeFed(ctx, apitest.SweepFile, errs, 0, server, args...)
}

// executeFed is executeTo with standard input, where downloads wait for files that are being
// stored.
func executeFed(ctx context.Context, in string, errs *page, storing time.Duration, server string, args ...string) outcome {
	var out bytes.Buffer

	o := &options{
		storing: storing,

		getenv: func(name string) string { return map[string]string{"BERTH_SERVER": server}[name] },
		now:    func() time.Time { return apitest.Start.Add(2 * time.Minute) },
	}

	root := &cobra.Command{Use: "berth", SilenceUsage: true, SilenceErrors: true}
	Explain(root)
	root.AddCommand(o.commands()...)
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(errs)
	root.SetIn(strings.NewReader(in))

	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(errs, "berth: "+err.Error())
	}

	return outcome{stdout: out.String(), stderr: errs.String(), code: ExitCode(err), err: err}
}

// requireGolden compares with a file, or writes it with -update.
func requireGolden(t *testing.T, name, got string) {
	t.Helper()

	path := "testdata/" + name
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}

	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
