package devstack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/berthml/berth"
)

// Temporal is a running development server of our own.
type Temporal struct {
	Address string // host:port of the frontend
	UI      string // URL of the web UI; empty when headless
	process *process
	again   func() (*process, error)
}

// TemporalConfig says where and how to run it.
type TemporalConfig struct {
	Dir      string            // database and log live below it; made when missing
	Port     int               // preferred, of its API; the web UI is 1000 above; 0 = any
	InMemory bool              // keeps nothing: tests only
	Headless bool              // without the web UI
	Search   map[string]string // search attributes by name, with their types
	Dynamic  []string          // dynamic configuration, each name=value: tests only
}

const (
	temporalStart = 60 * time.Second
	temporalStop  = 15 * time.Second
)

// StartTemporal runs the development server on the loopback interface. Errors
// say what to install.
func StartTemporal(config TemporalConfig) (*Temporal, error) {
	binary, err := FindTemporal()
	if err != nil {
		return nil, err
	}

	if err := os.MkdirAll(config.Dir, 0o755); err != nil { //nolint:gosec // G301: nothing secret
		return nil, fmt.Errorf("making Temporal's directory: %w", err)
	}

	if err := endLeftover("Temporal", config.pidFile(), config.Dir, syscall.SIGTERM); err != nil {
		return nil, err
	}

	for try := 1; ; try++ {
		t, err := startTemporal(config, binary)
		if berth.KindOf(err) != berth.KindUnavailable || try == portTries {
			return t, err
		}
	}
}

// portTries is how often the server is started when it ends at once: another
// process may take a port between our look and its start.
const portTries = 3

func startTemporal(config TemporalConfig, binary string) (*Temporal, error) {
	port, err := FreePort(config.Port)
	if err != nil {
		return nil, err
	}

	uiPort, err := FreePort(config.uiPort(), port)
	if err != nil {
		return nil, err
	}

	again := func() (*process, error) { return config.run(binary, port, uiPort) }

	process, err := again()
	if err != nil {
		return nil, err
	}

	ready := func() error {
		if err := answers(port); err != nil || config.Headless {
			return err
		}

		return dialable(uiPort)
	}
	if err := process.await(temporalStart, ready); err != nil {
		_ = process.stop(syscall.SIGTERM, temporalStop) // it has ended, or is late

		return nil, err
	}

	t := &Temporal{Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), process: process, again: again}
	if !config.Headless {
		t.UI = "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(uiPort))
	}

	return t, nil
}

// pidFile holds the server's process id.
func (c TemporalConfig) pidFile() string { return filepath.Join(c.Dir, "temporal.pid") }

// run starts the server and writes down its process id.
func (c TemporalConfig) run(binary string, port, uiPort int) (*process, error) {
	cmd := exec.CommandContext(context.Background(), binary, temporalArgs(c, port, uiPort)...) //nolint:gosec // G204: see binary

	// SIGKILL: its database is one file that recovers, and nothing of an orderly
	// stop is worth the second it takes when we are gone already.
	p, err := start("Temporal", cmd, filepath.Join(c.Dir, "temporal.log"), syscall.SIGKILL)
	if err != nil {
		return nil, err
	}

	if err := os.WriteFile(c.pidFile(), []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o644); err != nil { //nolint:gosec // G306: nothing secret
		return nil, errors.Join(fmt.Errorf("writing Temporal's process id: %w", err), p.stop(syscall.SIGTERM, temporalStop))
	}

	return p, nil
}

// Keep starts the server again, on its ports, whenever it ends by itself, until
// ctx ends. No other method of t may be called until Keep returns.
func (t *Temporal) Keep(ctx context.Context, log *slog.Logger) {
	keep(ctx, log, &t.process, t.again)
}

// Stop ends the server.
func (t *Temporal) Stop() error { return t.process.stop(syscall.SIGTERM, temporalStop) }

// PID is the server's process id.
func (t *Temporal) PID() int { return t.process.cmd.Process.Pid }

// answers reports whether the frontend serves: it listens some time before it
// does, and refuses every call until then.
func answers(port int) error {
	if err := dialable(port); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()

	c, err := client.DialContext(ctx, client.Options{
		HostPort: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return err
	}

	c.Close()

	return nil
}

// transferReads lets Temporal read its queue of transfer tasks 1,000 times a
// second: tasks that hand out work, start a trial, or tell a sweep of a trial's
// end. By default each shard reads at most 20 times a second
// (TransferProcessorMaxPollRPS in the server's common/dynamicconfig/constants.go),
// and the development server has one shard: as soon as a few trials run, each such
// step waits up to 50 ms.
const transferReads = "history.transferProcessorMaxPollRPS=1000"

func temporalArgs(config TemporalConfig, port, uiPort int) []string {
	args := []string{
		"server", "start-dev", "--ip", "127.0.0.1", "--port", strconv.Itoa(port), "--ui-port", strconv.Itoa(uiPort),
		"--log-level", "warn",
	}

	if config.Headless {
		args = append(args, "--headless")
	}

	if !config.InMemory {
		// A commit outlives the end of any process, and is safe from a power cut once
		// the system has written it (https://www.sqlite.org/wal.html): with
		// synchronous=FULL each of the some 25 commits of a trial waits for the disk.
		args = append(args, "--db-filename", filepath.Join(config.Dir, "temporal.db"), "--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=NORMAL")
	}

	for name, kind := range config.Search {
		args = append(args, "--search-attribute", name+"="+kind)
	}

	for _, value := range config.Dynamic {
		args = append(args, "--dynamic-config-value", value)
	}

	args = append(args, "--dynamic-config-value", transferReads)

	if len(config.Search) > 0 { // known from the start: the server need not look them up at every write
		args = append(args, "--dynamic-config-value", "system.forceSearchAttributesCacheRefreshOnRead=false")
	}

	return args
}

// uiPort is the preferred port of the web UI, as Temporal's own command has it.
func (c TemporalConfig) uiPort() int {
	if c.Port == 0 {
		return 0
	}

	return c.Port + 1000
}

// FindTemporal returns Temporal's command line tool, beside our own binary or on
// PATH. Errors: unavailable, with what to run.
func FindTemporal() (string, error) {
	self, _ := os.Executable() // without it nothing is beside us

	for _, name := range []string{filepath.Join(filepath.Dir(self), "temporal"), installedWith("temporal"), "temporal"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}

	return "", berth.Errorf(berth.KindUnavailable,
		"Temporal's command line tool was not found beside berth or on PATH: run `make build`, "+
			"`go install github.com/temporalio/cli/cmd/temporal@v1.5.1`, or give --temporal-address")
}
