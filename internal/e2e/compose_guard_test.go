//go:build integration && compose

package e2e

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/testkit/certtest"
)

// Settings of .env by which a deployment has roles and secrets.
const (
	serverPassword = "BERTH_SERVER_DB_PASSWORD" //nolint:gosec // G101: a name
	workerPassword = "BERTH_WORKER_DB_PASSWORD" //nolint:gosec // G101: a name
	secretsKey     = "BERTH_SECRETS_KEY"        //nolint:gosec // G101: a name
)

// sealed prints the text of its secret, and its SHA-256. It runs long enough that
// every machine gets some of its trials.
const sealed = `
name: sealed
image: berth-examples/python:3.11
command:
  - python3
  - -c
  - |
    import hashlib, time
    v = open("/run/secrets/hub").read()
    print("sha", hashlib.sha256(v.encode()).hexdigest())
    print("value", v, flush=True)
    time.sleep(6)
    print("val=1")
  - "{{n}}"
parameters: [{name: n, type: int, min: 1, max: TRIALS, step: 1}]
search: {algorithm: grid}
objective: {metric: val, goal: maximize}
metrics: {source: stdout}
secrets: [{name: hub_token, file: /run/secrets/hub}]
` + core + "\n"

// makeKey makes the key of secrets as production.md says, in the deployment's directory.
func (d *deployment) makeKey() {
	d.t.Helper()

	block := shellBlocks(d.t, "Secrets", 1)[0]
	require.Contains(d.t, block, " /etc/berth/secrets.key\n")

	said := d.sh(strings.ReplaceAll(block, "/etc/berth", filepath.Join(d.dir, "keys")))
	require.Regexp(d.t, `(?m)^age1[a-z0-9]+$`, said)

	d.settings[secretsKey] = filepath.Join(d.dir, "keys", "secrets.key")
}

// setSecret stores a secret as an administrator does.
func (d *deployment) setSecret() {
	d.t.Helper()

	d.secret = "hf_" + rand.Text()
	cmd := exec.CommandContext(d.t.Context(), binary, "secret", "set", "hub_token")
	cmd.Env = append(d.environment(), "BERTH_SERVER="+d.url, "BERTH_TOKEN="+d.token)
	cmd.Stdin = strings.NewReader(d.secret + "\n")

	out, err := cmd.CombinedOutput()
	require.NoError(d.t, err, string(out))
	require.NotContains(d.t, string(out), "warning")
}

// readSecret runs a sweep that mounts the secret: each trial reads its value, and no
// log has it.
func (d *deployment) readSecret(trials int) (sweep string) {
	d.t.Helper()

	sum := sha256.Sum256([]byte(d.secret))
	id := d.submit(strings.Replace(sealed, "TRIALS", strconv.Itoa(trials), 1))
	d.until(id, time.Minute, running(trials))
	d.requireOnce(id, trials)

	for _, a := range d.attempts(id) {
		status, log := d.get("/api/v1/attempts/" + a.ID + "/log")
		require.Equal(d.t, http.StatusOK, status)
		require.NotContains(d.t, log, d.secret)
		require.Contains(d.t, log, "sha "+hex.EncodeToString(sum[:]))
		require.Contains(d.t, log, "value "+strings.Repeat("*", len(d.secret)))
	}

	return id
}

// psql is the answer of the database berth to a superuser's query, by line.
func (d *deployment) psql(query string) []string {
	d.t.Helper()

	return strings.Fields(d.sh(`docker compose exec -T postgres psql --username postgres --no-align --tuples-only --command "` + query + `" berth`))
}

// databaseUsers are the roles that Berth's processes have.
func (d *deployment) databaseUsers() []string {
	d.t.Helper()

	return d.psql("SELECT DISTINCT usename FROM pg_stat_activity WHERE datname = 'berth' AND usename <> 'postgres' ORDER BY 1")
}

// requireRoles checks that server and worker are who .env says, and are held to it.
func (d *deployment) requireRoles() {
	d.t.Helper()

	require.Equal(d.t, []string{"berth_server", "berth_worker"}, d.databaseUsers())
	require.Equal(d.t, []string{"t", "f", "f", "t", "f", "f"}, d.psql("SELECT unnest(ARRAY["+
		"has_table_privilege('berth_server', 'api_tokens', 'SELECT'), has_table_privilege('berth_worker', 'api_tokens', 'SELECT'),"+
		"has_table_privilege('berth_server', 'shapes', 'INSERT'), has_table_privilege('berth_worker', 'shapes', 'INSERT'),"+
		"has_schema_privilege('berth_server', 'public', 'CREATE'), has_database_privilege('temporal', 'berth', 'CONNECT')])"))
}

// requireNoRefusal fails when PostgreSQL refused anything for want of a right.
func (d *deployment) requireNoRefusal() {
	d.t.Helper()

	requireNoRefusal(d.t, d.sh("docker compose logs"))
}

// encrypt gives the server an address for others and a certificate as certbot leaves
// it, and renews that.
func (d *deployment) encrypt(address string) {
	d.t.Helper()

	dir := filepath.Join(d.dir, "letsencrypt")
	require.NoError(d.t, os.MkdirAll(filepath.Join(dir, "live"), 0o700))
	authority := certtest.NewAuthority(d.t, d.dir)

	// renew makes new files, and points certbot's links to them.
	renew := func(name string) {
		pair := authority.Sign(name, time.Hour, address)
		for link, file := range map[string]string{"fullchain.pem": pair.Cert, "privkey.pem": pair.Key} {
			archived := name + "-" + link
			require.NoError(d.t, os.Rename(file, filepath.Join(dir, archived)))
			require.NoError(d.t, os.Symlink("../"+archived, filepath.Join(dir, "new")))
			require.NoError(d.t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "live", link)))
		}
	}
	presents := func() string {
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: authority.Pool(), MinVersion: tls.VersionTLS12}}).DialContext(
			d.t.Context(), "tcp", net.JoinHostPort(address, d.settings["BERTH_PORT"]))
		if err != nil {
			return err.Error()
		}
		defer conn.Close() //nolint:errcheck // nothing was sent

		encrypted, ok := conn.(*tls.Conn)
		require.True(d.t, ok)

		return encrypted.ConnectionState().PeerCertificates[0].Subject.CommonName
	}

	renew("first")

	d.settings["BERTH_ADDRESS"], d.settings["BERTH_TLS_DIR"] = address, dir
	d.berth["BERTH_ALLOWED_HOSTS"] = address
	d.settings["BERTH_TLS_CERT"], d.settings["BERTH_TLS_KEY"] = filepath.Join(dir, "live", "fullchain.pem"), filepath.Join(dir, "live", "privkey.pem")
	d.write()
	d.sh("docker compose up -d")
	require.Eventually(d.t, func() bool { return presents() == "first" }, startTimeout, tick)

	d.url = "http://" + net.JoinHostPort(address, d.settings["BERTH_PORT"])
	status, body := d.get("/api/v1/sweeps")
	require.Equal(d.t, http.StatusBadRequest, status)
	require.Contains(d.t, body, "HTTPS")

	d.url = strings.Replace(d.url, "http:", "https:", 1)
	require.Contains(d.t, d.cli("sweep", "list", "--ca-file", authority.File), "sealed")

	renew("second")
	require.Eventually(d.t, func() bool { return presents() == "second" }, startTimeout, tick, "the container sees the renewed files")
}
