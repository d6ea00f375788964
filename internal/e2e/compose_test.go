//go:build integration && compose

package e2e

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

const (
	// composePatience covers a sweep of TensorFlow trials beside builds.
	composePatience = 5 * time.Minute

	files = `
name: files
image: berth-examples/python:3.11
command:
  - python3
  - -c
  - |
    import json, sys
    open("/trial/out/weights.bin", "w").write("x" * int(sys.argv[1]))
    print(json.dumps({"val": int(sys.argv[1])}))
  - "{{n}}"
parameters: [{name: n, values: [1000, 3000, 2000]}]
search: {algorithm: grid}
objective: {metric: val, goal: maximize}
metrics: {source: stdout}
resources: {memory: 256MiB}
probe: {mode: 'off'}
`
	core = "resources: {memory: 64MiB, cpus: 1}\nprobe: {mode: 'off'}"
)

// The compose file as a team uses it: from nothing to a sweep's best trial and
// its files, a second machine that joins, and a backup that is restored into an
// empty database. The commands come from production.md.
func TestCompose(t *testing.T) { //nolint:paralleltest // it takes the machine
	other := newElsewhere(t)
	d := newServer(t, "first")
	d.storeFiles(other.here)
	d.makeKey()
	d.write()
	d.sh("docker compose up -d")
	d.enter()
	d.untilHosts(1)
	d.requireSound()
	d.requireRoles()

	finished := []string{d.fetchFiles()}
	d.setSecret()
	finished = append(finished, d.joinBy(other)...)
	d.requireNoRefusal()
	d.backUpAndRestore(finished)
	d.requireRoles()
	d.readSecret(2)
	d.encrypt(other.here)
	d.requireNoRefusal()
	d.requireStops()
}

// storeFiles runs an S3 that containers reach at the address.
func (d *deployment) storeFiles(address string) {
	d.t.Helper()

	backend := s3mem.New()
	require.NoError(d.t, backend.CreateBucket("berth"))

	listener, err := net.Listen("tcp", address+":0") //nolint:noctx // closed with the server
	require.NoError(d.t, err)

	server := &http.Server{Handler: gofakes3.New(backend).Server(), ReadHeaderTimeout: answerTimeout}

	go func() { _ = server.Serve(listener) }() // ends with Close

	d.t.Cleanup(func() { _ = server.Close() })

	d.settings["BERTH_ARTIFACTS"] = fmt.Sprintf("s3://berth?endpoint=http://%s&use_path_style=true&region=us-east-1", listener.Addr())
	d.settings["AWS_ACCESS_KEY_ID"], d.settings["AWS_SECRET_ACCESS_KEY"] = "key", "secret"
}

// requireSound checks the first things a user would: the machine seen from
// inside the worker, the pages, and that no service had to restart.
func (d *deployment) requireSound() {
	d.t.Helper()

	doctor := d.sh("docker compose exec -T worker berth doctor")
	require.NotContains(d.t, doctor, "FIX")
	require.NotContains(d.t, d.sh("docker compose logs worker"), "cannot read the kernel's log")
	require.Regexp(d.t, `disk: .*[0-9,]+ MiB (free|left)`, doctor)
	require.Contains(d.t, doctor, "1 of 1 hosts answer")

	for _, port := range []string{"BERTH_PORT", "TEMPORAL_UI_PORT"} {
		response, err := http.Get("http://127.0.0.1:" + d.settings[port]) //nolint:noctx // answers at once
		require.NoError(d.t, err)
		require.Equal(d.t, http.StatusOK, response.StatusCode, port)
		require.Contains(d.t, strings.ToLower(readAll(response.Body)), "<!doctype html")
		require.NoError(d.t, response.Body.Close())
	}

	status, _ := (&deployment{stack: stack{t: d.t, url: d.url}}).get("/api/v1/sweeps")
	require.Equal(d.t, http.StatusUnauthorized, status, "a port of a container is no loopback")

	require.Regexp(d.t, `^berth_\S+\s*$`, d.sh("docker compose exec -T server berth token create me --role admin 2>/dev/null"))
	require.Equal(d.t, "0", strings.Join(slices.Compact(strings.Fields(
		d.sh("docker inspect --format '{{.RestartCount}}' $(docker compose ps --all --quiet)"))), " "))
}

// fetchFiles runs trials that write a file, and downloads that of the best.
func (d *deployment) fetchFiles() string {
	d.t.Helper()

	id := d.submit(files)
	require.Equal(d.t, 3, d.until(id, composePatience, ended).Counts.Succeeded)

	for _, trial := range d.trials(id) {
		require.Eventually(d.t, func() bool {
			set, err := d.api.ListFilesWithResponse(d.t.Context(), trial.ID, nil)

			return err == nil && set.JSON200 != nil && set.JSON200.State == client.FileStateStored && set.JSON200.Files == 1
		}, time.Minute, tick, "trial %d", trial.Number)
	}

	dir := filepath.Join(d.dir, "best")
	d.cli("sweep", "best", id, "--download", dir)
	require.Equal(d.t, strings.Repeat("x", 3000), readFile(d.t, filepath.Join(dir, "weights.bin")))
	require.NoError(d.t, os.RemoveAll(dir))

	return id
}

// joinBy lets a further machine join while a trial runs, and runs sweeps on both.
func (d *deployment) joinBy(other *elsewhere) []string {
	d.t.Helper()

	blocks := shellBlocks(d.t, "More machines", 2)
	other.start(d.settings["BERTH_IMAGE"], "berth-test/busy:1", "berth-examples/python:3.11")

	during := d.submit(busy(2, 12_000, core))
	d.until(during, time.Minute, running(2))

	d.settings["COMPOSE_FILE"], d.settings["BERTH_BIND"] = "docker-compose.yml:docker-compose.machines.yml", other.here
	d.write()
	d.sh(blocks[0])

	second := newDeployment(d.t, "second")
	second.env = []string{"DOCKER_HOST=unix://" + other.socket()}
	second.settings["COMPOSE_FILE"] = "docker-compose.worker.yml" // clean uses this file
	second.settings["BERTH_DOCKER_SOCKET"] = other.socket()
	second.settings["BERTH_POSTGRES_URL"] = fmt.Sprintf("postgres://berth_worker:%s@%s/berth?sslmode=disable",
		d.settings[workerPassword], net.JoinHostPort(other.here, d.settings["POSTGRES_PORT"]))
	second.settings["BERTH_TEMPORAL_ADDRESS"] = net.JoinHostPort(other.here, d.settings["TEMPORAL_PORT"])

	for _, name := range []string{"BERTH_ARTIFACTS", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		second.settings[name] = d.settings[name]
	}

	key := filepath.Join(second.dir, "secrets.key")
	require.NoError(d.t, os.WriteFile(key, []byte(readFile(d.t, d.settings[secretsKey])), 0o600))
	second.settings[secretsKey] = key

	second.write()
	second.sh(blocks[1])
	d.untilHosts(2)
	d.requireOnce(during, 2) // PostgreSQL and Temporal were restarted during the sweep

	id := d.submit(busy(8, 5000, core))
	d.until(id, time.Minute, running(4))
	require.Eventually(d.t, func() bool { return len(second.running()) > 0 }, time.Minute, tick, "its containers are on the machine's own Docker")
	d.requireOnce(id, 8)

	d.requireHosts(id, 2)

	secret := d.readSecret(4)
	d.requireHosts(secret, 2)
	second.requireNoRefusal()

	// The second machine is removed again.
	d.cli("host", "drain", "second")
	second.sh("docker compose down")
	d.cli("host", "remove", "second", "--force") // it answered a moment ago
	d.untilHosts(1)

	return []string{id, secret}
}

// requireHosts fails unless trials of the sweep ran on this many machines.
func (d *deployment) requireHosts(sweep string, want int) {
	d.t.Helper()

	hosts := map[string]int{}
	for _, a := range d.attempts(sweep) {
		hosts[a.HostID]++
	}

	require.Len(d.t, hosts, want, "trials by host: %v", hosts)
	d.t.Logf("trials by host: %v", hosts)
}

// backUpAndRestore loses everything but a dump: ended sweeps are unchanged, and
// open ones go on.
func (d *deployment) backUpAndRestore(finished []string) {
	d.t.Helper()

	blocks := shellBlocks(d.t, "Backup", 2)

	paused := d.submit(busy(24, 1000, core)) // more than are begun at once
	d.until(paused, time.Minute, func(s client.Sweep) bool { return s.Counts.Succeeded >= 2 })
	_, err := d.api.PauseSweepWithResponse(d.t.Context(), paused)
	require.NoError(d.t, err)
	d.until(paused, time.Minute, func(s client.Sweep) bool { return s.State == client.SweepStatePaused && s.Counts.Running == 0 })

	open := d.submit(busy(6, 15_000, core))
	d.until(open, time.Minute, running(2))

	before := d.results(finished)
	require.Greater(d.t, len(before), 10*len(finished))

	d.psql("CREATE ROLE dashboards; GRANT SELECT ON sweeps TO dashboards") // no .env names it
	d.sh(blocks[0])
	at := len(d.attempts(paused))
	d.sh("docker compose down --volumes")
	require.Empty(d.t, d.sh("docker volume ls --quiet --filter label=com.docker.compose.project="+d.settings["COMPOSE_PROJECT_NAME"]))

	said := d.sh(blocks[1])
	require.Contains(d.t, said, "Started again: 2 sweeps")
	d.untilReady()
	d.untilHosts(1) // with the earlier token

	after := d.results(finished)
	require.Equal(d.t, slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))

	var changed []string

	for path, body := range before {
		if body != after[path] {
			changed = append(changed, fmt.Sprintf("%s\nbefore: %s\nafter:  %s", path, body, after[path]))
		}
	}

	require.Empty(d.t, changed)
	d.t.Logf("%d answers of the API are the same byte for byte", len(after))

	require.Equal(d.t, client.SweepStatePaused, d.sweep(paused).State)
	require.Len(d.t, d.attempts(paused), at, "nothing of it started by itself")
	_, err = d.api.ResumeSweepWithResponse(d.t.Context(), paused)
	require.NoError(d.t, err)
	d.requireOnce(paused, 24)

	require.Equal(d.t, 6, d.until(open, composePatience, ended).Counts.Succeeded)
	require.Len(d.t, d.attempts(open), 6, "what ran at the time of the dump was adopted")

	// And Berth takes new sweeps.
	d.requireOnce(d.submit(busy(2, 200, core)), 2)
}

// asOf is when a report was asked for.
var asOf = regexp.MustCompile(`"as_of":"[^"]*",`)

// results is all that the API says of sweeps that have ended, by path.
func (d *deployment) results(sweeps []string) map[string]string {
	d.t.Helper()

	found := map[string]string{}
	take := func(path string) {
		status, body := d.get("/api/v1" + path)
		require.Equal(d.t, http.StatusOK, status, "%s: %s", path, body)
		found[path] = asOf.ReplaceAllString(body, "")
	}

	for _, id := range sweeps {
		for _, path := range []string{"", "/trials?limit=500", "/attempts?limit=500", "/metric-names", "/report", "/export?format=csv&what=trials", "/export?format=csv&what=metrics"} {
			take("/sweeps/" + id + path)
		}

		for _, trial := range d.trials(id) {
			take("/trials/" + trial.ID + "/files")
		}

		for _, a := range d.attempts(id) {
			for _, path := range []string{"", "/log", "/metrics", "/memory"} {
				take("/attempts/" + a.ID + path)
			}
		}
	}

	return found
}

// requireStops checks that all end in order at Docker's SIGTERM.
func (d *deployment) requireStops() {
	d.t.Helper()

	d.sh("docker compose stop")

	for line := range strings.Lines(d.sh("docker inspect --format '{{.Name}} {{.State.ExitCode}}' $(docker compose ps --all --quiet server worker postgres)")) {
		require.True(d.t, strings.HasSuffix(strings.TrimSpace(line), " 0"), line)
	}
}
