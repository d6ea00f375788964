//go:build integration

package devstack

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// childVariable makes this test binary a parent of servers that is to be killed.
const childVariable = "BERTH_DEVSTACK_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		if err := beKilled(dir); err != nil {
			fmt.Println("failed", err) //nolint:forbidigo // the parent reads it
			os.Exit(1)
		}
	}

	goleak.VerifyTestMain(m)
}

// beKilled starts both servers, says their process ids, and waits.
func beKilled(dir string) error {
	p, err := StartPostgres(context.Background(), PostgresConfig{Dir: filepath.Join(dir, "postgres")})
	if err != nil {
		return err
	}

	temporal, err := StartTemporal(TemporalConfig{Dir: filepath.Join(dir, "temporal"), Headless: true})
	if err != nil {
		return err
	}

	if out, err := query(p, "CREATE TABLE kept (n integer); INSERT INTO kept VALUES (42)"); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}

	fmt.Println("up", p.PID(), temporal.PID()) //nolint:forbidigo // the parent reads it

	select {}
}

// query asks the server by its own command line tool.
func query(p *Postgres, sql string) (string, error) {
	bin, err := FindPostgres(context.Background(), "")
	if err != nil {
		return "", err
	}

	out, err := exec.Command(filepath.Join(bin, "psql"), p.URL, "-qAtc", sql).CombinedOutput() //nolint:noctx // ends by itself

	return strings.TrimSpace(string(out)), err
}

func ask(t *testing.T, p *Postgres, sql string) string {
	t.Helper()

	out, err := query(p, sql)
	require.NoError(t, err, out)

	return out
}

func TestPostgres_KeepsWhatIsInItsDirectory(t *testing.T) {
	t.Parallel()

	config := PostgresConfig{Dir: filepath.Join(servers(t), "below", "postgres")}
	require.NoError(t, os.MkdirAll(config.Dir+"/data.new/half", 0o755)) //nolint:gosec // G301: an earlier start was killed

	first, err := StartPostgres(t.Context(), config)
	require.NoError(t, err)
	ask(t, first, "CREATE TABLE kept (n integer); INSERT INTO kept VALUES (42)")
	require.NoError(t, first.Stop())
	require.True(t, gone(first.PID()))

	config.Port = first.Port
	second, err := StartPostgres(t.Context(), config)
	require.NoError(t, err)
	require.Equal(t, first.URL, second.URL, "the same port and password")
	require.Equal(t, "42", ask(t, second, "SELECT n FROM kept"))
	require.NoError(t, second.Stop())

	password := filepath.Join(config.Dir, "password")
	require.NoError(t, os.Rename(password, password+".lost"))

	_, err = StartPostgres(t.Context(), config)
	require.ErrorContains(t, err, "its password cannot be read")
	require.NoError(t, os.Rename(password+".lost", password))

	third, err := StartPostgres(t.Context(), config)
	require.NoError(t, err)
	require.Equal(t, "42", ask(t, third, "SELECT n FROM kept"), "nothing was removed")
	require.NoError(t, third.Stop())
}

func TestTemporal_NotFound(t *testing.T) {
	t.Setenv("PATH", t.TempDir())

	_, err := StartTemporal(TemporalConfig{Dir: t.TempDir()})
	require.ErrorContains(t, err, "make build")
}

// Nothing outlives a parent that is killed, and its directory can be used again.
func TestStack_NothingOutlivesAKilledParent(t *testing.T) {
	t.Parallel()

	dir := servers(t)
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), childVariable+"="+dir)
	output, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())

	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)

	fields := strings.Fields(line)
	require.Len(t, fields, 3, line)
	require.Equal(t, "up", fields[0], line)
	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())

	for _, field := range fields[1:] {
		pid, err := strconv.Atoi(field)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return gone(pid) }, 20*time.Second, 20*time.Millisecond, "process %d is still there", pid)
	}

	p, err := StartPostgres(t.Context(), PostgresConfig{Dir: filepath.Join(dir, "postgres")})
	require.NoError(t, err)
	require.Equal(t, "42", ask(t, p, "SELECT n FROM kept"), "what was committed is there")
	require.NoError(t, p.Stop())

	temporal, err := StartTemporal(TemporalConfig{Dir: filepath.Join(dir, "temporal"), Headless: true})
	require.NoError(t, err)
	require.NoError(t, temporal.Stop())
}

// A killed server comes back with its data, at its address.
func TestKeep_StartsAgainWhatEnded(t *testing.T) {
	t.Parallel()

	dir := servers(t)
	output := filepath.Join(dir, "said")
	file, err := os.Create(output)
	require.NoError(t, err)

	defer file.Close() //nolint:errcheck // read below

	p, err := StartPostgres(t.Context(), PostgresConfig{Dir: filepath.Join(dir, "postgres")})
	require.NoError(t, err)
	ask(t, p, "CREATE TABLE kept (n integer); INSERT INTO kept VALUES (42)")

	temporal, err := StartTemporal(TemporalConfig{Dir: filepath.Join(dir, "temporal")})
	require.NoError(t, err)

	pids := []int{p.PID(), temporal.PID()}
	ctx, cancel := context.WithCancel(t.Context())
	log := slog.New(slog.NewTextHandler(file, nil))

	var keepers sync.WaitGroup

	keepers.Go(func() { p.Keep(ctx, log) })
	keepers.Go(func() { temporal.Keep(ctx, log) })

	for _, pid := range pids {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		require.Eventually(t, func() bool { return gone(pid) }, 10*time.Second, 20*time.Millisecond)
	}

	require.Eventually(t, func() bool {
		answer, err := query(&Postgres{URL: p.URL}, "SELECT n FROM kept")

		return err == nil && answer == "42"
	}, time.Minute, 50*time.Millisecond, "PostgreSQL is away")

	for _, address := range []string{temporal.Address, strings.TrimPrefix(temporal.UI, "http://")} {
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)

		number, err := strconv.Atoi(port)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return dialable(number) == nil }, time.Minute, 50*time.Millisecond, "Temporal is away from %s", address)
	}

	cancel()
	keepers.Wait()

	require.NotContains(t, pids, p.PID())
	require.NotContains(t, pids, temporal.PID())
	require.NoError(t, p.Stop())
	require.NoError(t, temporal.Stop())
	require.True(t, gone(p.PID()))
	require.True(t, gone(temporal.PID()))

	said, err := os.ReadFile(output)
	require.NoError(t, err)
	require.Contains(t, string(said), `"PostgreSQL ended; Berth starts it again" ended="signal: killed" output=`+filepath.Join(dir, "postgres", "postgres.log"))
	require.Contains(t, string(said), `"Temporal ended; Berth starts it again" ended="signal: killed" output=`+filepath.Join(dir, "temporal", "temporal.log"))
}

// gone reports whether a process has ended, also one not yet waited for.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}

	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, found := strings.Cut(string(stat), ") ")

	return err != nil || found && strings.HasPrefix(rest, "Z")
}
