package devstack

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/berthml/berth"
)

// Postgres is a running PostgreSQL of our own.
type Postgres struct {
	URL     string // of the database berth, with its password
	Port    int
	process *process
	again   func() (*process, error)
}

// PostgresConfig says where and how to run it.
type PostgresConfig struct {
	Dir  string // data, password and log live below it; made when missing
	Port int    // preferred; another one if it is taken
	// Volatile trades durability for speed: tests only.
	Volatile bool
}

const (
	postgresStart = 60 * time.Second // recovery after a crash takes its time
	postgresStop  = 30 * time.Second
	database      = "berth"
)

// StartPostgres runs the installed PostgreSQL on the loopback interface with
// a data directory of its own, made on first use. As root it runs as the user
// postgres, or nobody: PostgreSQL refuses root. Errors say what to install.
func StartPostgres(ctx context.Context, config PostgresConfig) (*Postgres, error) {
	dir, err := filepath.Abs(config.Dir) // our programs run elsewhere
	if err != nil {
		return nil, fmt.Errorf("reading database directory: %w", err)
	}

	bin, err := FindPostgres(ctx, dir)
	if err != nil {
		return nil, err
	}

	as, err := unprivileged()
	if err != nil {
		return nil, err
	}

	c := cluster{bin: bin, as: as, dir: dir, data: filepath.Join(dir, "data"), volatile: config.Volatile}

	if err := c.house(ctx); err != nil {
		return nil, err
	}

	password, err := c.init(ctx)
	if err != nil {
		return nil, err
	}

	if err := c.stopLeftover(); err != nil {
		return nil, err
	}

	port, first, err := c.startOnFreePort(config.Port) //nolint:contextcheck // the server outlives ctx
	if err != nil {
		return nil, err
	}

	p := &Postgres{
		URL:     fmt.Sprintf("postgres://berth:%s@127.0.0.1:%d/%s?sslmode=disable", password, port, database),
		Port:    port,
		process: first,
		again:   func() (*process, error) { return c.run(port) }, //nolint:contextcheck // the server outlives ctx
	}

	if err := c.createDatabase(ctx, p, password); err != nil {
		return nil, errors.Join(err, p.Stop())
	}

	return p, nil
}

// Keep starts the server again, on its port, whenever it ends by itself, until
// ctx ends. No other method of p may be called until Keep returns.
func (p *Postgres) Keep(ctx context.Context, log *slog.Logger) {
	keep(ctx, log, &p.process, p.again)
}

// Stop shuts the server down: sessions are ended, nothing is lost.
func (p *Postgres) Stop() error {
	return p.process.stop(syscall.SIGINT, postgresStop)
}

// PID is the server's process id.
func (p *Postgres) PID() int { return p.process.cmd.Process.Pid }

// unprivileged returns the user to run as; nil = the present one.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nil is a credential's "as we are"
	}

	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}

		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)

		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}

	return nil, berth.Errorf(berth.KindUnavailable, "PostgreSQL refuses to run as root, and there is no user postgres or nobody to run it as")
}

// cluster is a data directory and how to run it.
type cluster struct {
	bin, dir, data string
	as             *syscall.Credential
	volatile       bool
}

func (c cluster) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, program), args...) //nolint:gosec // G204: installed programs
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.as}

	return cmd
}

// init makes the data directory on first use and returns its password. It makes
// it under another name, so that a directory at its own name is complete; and
// it never removes an existing one.
func (c cluster) init(ctx context.Context) (string, error) {
	secret := filepath.Join(c.dir, "password")

	if _, err := os.Stat(c.data); !errors.Is(err, fs.ErrNotExist) {
		password, err := os.ReadFile(secret) //nolint:gosec // G304: our own file
		if err != nil {
			return "", berth.Errorf(berth.KindConflict,
				"there is a database in %s and its password cannot be read; bring the file back, or use another directory: %w", c.data, err)
		}

		return strings.TrimSpace(string(password)), nil
	}

	fresh := c.data + ".new"
	if err := c.mkdirs(fresh); err != nil {
		return "", err
	}

	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails (crypto/rand)
	password := hex.EncodeToString(random)

	if err := os.WriteFile(secret, []byte(password+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("writing database password: %w", err)
	}

	if err := c.chown(secret); err != nil {
		return "", err
	}

	out, err := c.command(ctx, "initdb", "--pgdata", fresh, "--username", "berth", "--pwfile", secret,
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync").CombinedOutput()
	if err != nil {
		return "", berth.Errorf(berth.KindUnavailable, "making database in %s: %w: %s", fresh, err, strings.TrimSpace(string(out)))
	}

	if err := os.Rename(fresh, c.data); err != nil {
		return "", fmt.Errorf("making database directory: %w", err)
	}

	return password, nil
}

// house makes our directory, which PostgreSQL's user owns and can enter.
func (c cluster) house(ctx context.Context) error {
	if err := os.MkdirAll(c.dir, 0o755); err != nil { //nolint:gosec // G301: PostgreSQL's user must pass through
		return fmt.Errorf("making database directory: %w", err)
	}

	if err := c.chown(c.dir); err != nil {
		return err
	}

	return c.checkWay(ctx)
}

// checkWay checks that PostgreSQL's user can run its programs and enter our directory. It
// tries, so that access lists count. Errors: invalid, with the permission to change.
func (c cluster) checkWay(ctx context.Context) error {
	if c.as == nil {
		return nil // we made it ourselves
	}

	try := func(dir string) error {
		cmd := c.command(ctx, "postgres", "--version")
		cmd.Dir = dir

		return cmd.Run()
	}

	if err := try("/"); errors.Is(err, fs.ErrPermission) {
		return berth.Errorf(berth.KindInvalid, "the user %d, as which PostgreSQL runs, cannot run the programs in %s: `namei -l %[2]s` shows which directory on the way is closed; "+
			"run `chmod o+x` on that, or install Berth where everybody may enter, such as /opt/berth", c.as.Uid, c.bin)
	}

	err := try(c.dir)

	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return berth.Errorf(berth.KindInvalid, "the user %d, as which PostgreSQL runs, cannot enter %s: `namei -l %[2]s` shows which directory on the way is closed; "+
			"run `chmod o+x` on that, or keep the data elsewhere by --data-dir, such as /var/lib/berth", c.as.Uid, c.dir)
	default:
		return fmt.Errorf("trying to enter %s as the user %d: %w", c.dir, c.as.Uid, err)
	}
}

// mkdirs makes an empty directory for a database.
func (c cluster) mkdirs(data string) error {
	if err := os.RemoveAll(data); err != nil { // half made
		return fmt.Errorf("making database directory: %w", err)
	}

	if err := os.Mkdir(data, 0o700); err != nil {
		return fmt.Errorf("making database directory: %w", err)
	}

	return c.chown(data)
}

func (c cluster) chown(path string) error {
	if c.as == nil {
		return nil
	}

	if err := os.Chown(path, int(c.as.Uid), int(c.as.Gid)); err != nil {
		return fmt.Errorf("giving %s to PostgreSQL's user: %w", path, err)
	}

	return nil
}

// stopLeftover ends a server that an earlier, killed process left on this
// data directory.
func (c cluster) stopLeftover() error {
	return endLeftover("PostgreSQL", filepath.Join(c.data, "postmaster.pid"), c.data, syscall.SIGINT)
}

// startOnFreePort tries again when another process takes the port between our
// look and the server's start.
func (c cluster) startOnFreePort(wanted int) (port int, p *process, err error) {
	for range portTries {
		if port, err = FreePort(wanted); err != nil {
			return 0, nil, err
		}

		if p, err = c.start(port); berth.KindOf(err) != berth.KindUnavailable {
			break
		}
	}

	return port, p, err
}

// start runs the server and waits until it answers.
func (c cluster) start(port int) (*process, error) {
	process, err := c.run(port)
	if err != nil {
		return nil, err
	}

	if err := process.await(postgresStart, func() error { return c.ready(port) }); err != nil {
		return nil, errors.Join(err, process.stop(syscall.SIGQUIT, postgresStop))
	}

	return process, nil
}

func (c cluster) run(port int) (*process, error) {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(port),
		"unix_socket_directories": "",
		"max_connections":         "100",
		"shared_buffers":          "128MB",
		"log_min_messages":        "warning",
	}
	if c.volatile {
		settings["fsync"], settings["synchronous_commit"], settings["full_page_writes"] = "off", "off", "off"
	}

	args := []string{"-D", c.data}
	for name, value := range settings {
		args = append(args, "-c", name+"="+value)
	}

	// SIGQUIT: it goes down at once, as in a power cut, and recovers on the next start.
	return start("PostgreSQL", c.command(context.Background(), "postgres", args...), filepath.Join(c.dir, "postgres.log"), syscall.SIGQUIT)
}

func (c cluster) ready(port int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()

	if err := c.command(ctx, "pg_isready", "-q", "-h", "127.0.0.1", "-p", strconv.Itoa(port)).Run(); err != nil {
		return fmt.Errorf("asking pg_isready: %w", err)
	}

	return nil
}

// createDatabase makes the database berth unless it exists.
func (c cluster) createDatabase(ctx context.Context, p *Postgres, password string) error {
	cmd := c.command(ctx, "createdb", "-h", "127.0.0.1", "-p", strconv.Itoa(p.Port), "-U", "berth", database)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password)

	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(out), "already exists") {
		return berth.Errorf(berth.KindUnavailable, "making database %q: %w: %s", database, err, strings.TrimSpace(string(out)))
	}

	return nil
}
