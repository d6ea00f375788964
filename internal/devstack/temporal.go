package devstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/berthml/berth"
)

// Temporal is a running development server of our own.
type Temporal struct {
	Address string // host:port of the frontend
	UI      string // URL of the web UI; empty when headless
	process *process
}

// TemporalConfig says where and how to run it.
type TemporalConfig struct {
	Dir      string            // database and log live below it; made when missing
	Binary   string            // of Temporal's CLI; empty = look for it
	Port     int               // preferred, of the frontend
	UIPort   int               // preferred, of the web UI
	InMemory bool              // keeps nothing: tests only
	Headless bool              // without the web UI
	Search   map[string]string // search attributes by name, with their types
}

const (
	temporalStart = 60 * time.Second
	temporalStop  = 15 * time.Second
)

// StartTemporal runs the development server on the loopback interface. Errors
// say what to install.
func StartTemporal(config TemporalConfig) (*Temporal, error) {
	binary, err := findTemporal(config.Binary)
	if err != nil {
		return nil, err
	}

	if err := os.MkdirAll(config.Dir, 0o755); err != nil { //nolint:gosec // G301: nothing secret
		return nil, fmt.Errorf("making Temporal's directory: %w", err)
	}

	pidFile := filepath.Join(config.Dir, "temporal.pid")
	if err := endLeftover("Temporal", pidFile, config.Dir, syscall.SIGTERM); err != nil {
		return nil, err
	}

	for try := 1; ; try++ {
		t, err := startTemporal(config, binary, pidFile)
		if berth.KindOf(err) != berth.KindUnavailable || try == portTries {
			return t, err
		}
	}
}

// portTries is how often the server is started when it ends at once: somebody
// may take a port between our look and its start.
const portTries = 3

func startTemporal(config TemporalConfig, binary, pidFile string) (*Temporal, error) {
	port, err := FreePort(config.Port)
	if err != nil {
		return nil, err
	}

	uiPort, err := FreePort(config.UIPort)
	if err != nil {
		return nil, err
	}

	logFile := filepath.Join(config.Dir, "temporal.log")
	cmd := exec.CommandContext(context.Background(), binary, temporalArgs(config, port, uiPort)...) //nolint:gosec // G204: see findTemporal

	// SIGKILL: its database is one file that recovers, and nothing of an orderly
	// stop is worth the second it takes when we are gone already.
	process, err := start("Temporal", cmd, logFile, syscall.SIGKILL)
	if err != nil {
		return nil, err
	}

	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(process.cmd.Process.Pid)+"\n"), 0o644); err != nil { //nolint:gosec // G306: nothing secret
		return nil, errors.Join(fmt.Errorf("writing Temporal's process id: %w", err), process.stop(syscall.SIGTERM, temporalStop))
	}

	ready := func() error {
		if config.Headless {
			return dialable(port)
		}

		return errors.Join(dialable(port), dialable(uiPort))
	}
	if err := process.await(temporalStart, logFile, ready); err != nil {
		_ = process.stop(syscall.SIGTERM, temporalStop) // it has ended, or is late

		return nil, err
	}

	t := &Temporal{Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), process: process}
	if !config.Headless {
		t.UI = "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(uiPort))
	}

	return t, nil
}

// Stop ends the server.
func (t *Temporal) Stop() error { return t.process.stop(syscall.SIGTERM, temporalStop) }

// PID is the server's process id.
func (t *Temporal) PID() int { return t.process.cmd.Process.Pid }

func temporalArgs(config TemporalConfig, port, uiPort int) []string {
	args := []string{
		"server", "start-dev", "--ip", "127.0.0.1", "--port", strconv.Itoa(port), "--ui-port", strconv.Itoa(uiPort),
		"--log-level", "warn",
	}

	if config.Headless {
		args = append(args, "--headless")
	}

	if !config.InMemory {
		// A write-ahead log takes one sync per commit instead of three, and FULL
		// loses none of them in a power cut.
		args = append(args, "--db-filename", filepath.Join(config.Dir, "temporal.db"),
			"--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=FULL")
	}

	for name, kind := range config.Search {
		args = append(args, "--search-attribute", name+"="+kind)
	}

	if len(config.Search) > 0 { // known from the start: the server need not look them up at every write
		args = append(args, "--dynamic-config-value", "system.forceSearchAttributesCacheRefreshOnRead=false")
	}

	return args
}

// findTemporal looks where the user said, beside our own binary, and on PATH.
func findTemporal(wanted string) (string, error) {
	candidates := []string{wanted}
	if wanted == "" {
		candidates = nil

		if self, err := os.Executable(); err == nil {
			candidates = append(candidates, filepath.Join(filepath.Dir(self), "temporal"))
		}

		if path, err := exec.LookPath("temporal"); err == nil {
			candidates = append(candidates, path)
		}
	}

	for _, path := range candidates {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}

	return "", berth.Errorf(berth.KindUnavailable,
		"Temporal's command line tool was not found beside berth or on PATH: run `make build`, "+
			"`go install github.com/temporalio/cli/cmd/temporal@v1.5.1`, or give --temporal-binary or --temporal-address")
}
