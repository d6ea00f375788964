//go:build integration && compose

package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/testkit/runtimetest"
)

// repository is where this test's source is.
const repository = "../.."

// deployment is the directory of a person who runs Berth by a compose file: a
// copy of the files, a .env and a berth.env. Its stack is the API.
type deployment struct {
	stack

	settings map[string]string // .env
	berth    map[string]string // berth.env
	config   string            // DOCKER_CONFIG, with the plug-in compose
	token    string
	secret   string // value of hub_token
}

// newDeployment copies the files. Everything that it starts is gone at the end.
func newDeployment(t testing.TB, name string) *deployment {
	t.Helper()

	plugin, err := exec.LookPath("docker-compose")
	if err != nil || os.Geteuid() != 0 {
		runtimetest.Skip(t, "needs root, and docker-compose on the PATH: run `make test/compose`")
	}

	dir, err := os.MkdirTemp("", "berth-compose-") //nolint:usetesting // Docker mounts it, and other users pass through
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // G302: the same

	d := &deployment{
		stack:    stack{t: t, dir: dir, instance: name + "-" + strings.ToLower(rand.Text()[:8])},
		config:   filepath.Join(dir, "docker"),
		settings: localImages(t), berth: map[string]string{},
	}
	d.settings["COMPOSE_PROJECT_NAME"] = "berth-" + d.instance
	d.settings["BERTH_HOST_NAME"] = name
	d.settings["BERTH_DATA_DIR"] = filepath.Join(dir, "data")
	maps.Copy(d.berth, map[string]string{
		"BERTH_INSTANCE": d.instance, "BERTH_GRACE": "3s", "BERTH_RATE": "10000", "BERTH_RATE_BURST": "10000",
		// The machine has other tests, and two hosts in the first of ours.
		"BERTH_MACHINE_ID": d.instance, "BERTH_CPUS": "2", "BERTH_MEMORY": "3GiB",
	})

	undo(t, d.clean)

	files, err := filepath.Glob(filepath.Join(repository, "docker-compose*.yml"))
	require.NoError(t, err)

	for _, file := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(readFile(t, file)), 0o644)) //nolint:gosec // G306: no secret
	}

	require.NoError(t, os.CopyFS(filepath.Join(dir, "deploy"), os.DirFS(filepath.Join(repository, "deploy"))))
	require.NoError(t, os.MkdirAll(filepath.Join(d.config, "cli-plugins"), 0o755)) //nolint:gosec // G301: no secret
	require.NoError(t, os.Symlink(plugin, filepath.Join(d.config, "cli-plugins", "docker-compose")))

	return d
}

// newServer is a deployment of everything, as .env.example recommends, on its own ports.
func newServer(t testing.TB, name string) *deployment {
	t.Helper()

	d := newDeployment(t, name)

	for line := range strings.Lines(readFile(t, filepath.Join(repository, ".env.example"))) {
		if name, ok := strings.CutSuffix(strings.TrimSpace(line), "PASSWORD="); ok {
			d.settings[name+"PASSWORD"] = rand.Text()
		}
	}

	require.NotEmpty(t, d.settings[serverPassword])
	require.NotEmpty(t, d.settings[workerPassword])

	for _, port := range []string{"BERTH_PORT", "TEMPORAL_PORT", "TEMPORAL_UI_PORT", "POSTGRES_PORT"} {
		d.settings[port] = fmt.Sprint(freePort(t))
	}

	d.url = "http://127.0.0.1:" + d.settings["BERTH_PORT"]

	return d
}

// localImages are the names of the images that scripts/compose-images makes.
func localImages(t testing.TB) map[string]string {
	t.Helper()

	names := map[string]string{}

	for line := range strings.Lines(readFile(t, filepath.Join(repository, "deploy", "local", "images.env"))) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			names[name] = value
		}
	}

	require.NotEmpty(t, names["BERTH_IMAGE"])

	return names
}

// write writes .env and berth.env.
func (d *deployment) write() {
	for name, values := range map[string]map[string]string{".env": d.settings, "berth.env": d.berth} {
		var text strings.Builder
		for _, key := range slices.Sorted(maps.Keys(values)) {
			fmt.Fprintf(&text, "%s=%s\n", key, values[key])
		}

		require.NoError(d.t, os.WriteFile(filepath.Join(d.dir, name), []byte(text.String()), 0o600))
	}
}

// environment is ours without variables for Docker or Berth.
func (d *deployment) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "BERTH_") || strings.HasPrefix(entry, "COMPOSE_") || strings.HasPrefix(entry, "DOCKER_")
	})

	return append(append(env, "DOCKER_CONFIG="+d.config), d.env...)
}

// commandTimeout is more than any command of a person takes here.
const commandTimeout = 5 * time.Minute

// sh runs a user's commands in the directory, and returns their output.
func (d *deployment) sh(commands string) string {
	d.t.Helper()

	out, err := d.try(commands)
	require.NoError(d.t, err, "%s\n%s", commands, out)

	return out
}

func (d *deployment) try(commands string) (string, error) {
	d.t.Helper()

	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout) // the test's own may have ended
	defer cancel()

	began := time.Now()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir, cmd.Env = d.dir, d.environment()

	out, err := cmd.CombinedOutput()
	d.t.Logf("%4.1f s: %s", time.Since(began).Seconds(), strings.TrimSpace(commands))

	return string(out), err
}

// firstToken matches the token in the log that production.md tells the user to
// read.
var firstToken = regexp.MustCompile(`The first token, an admin's, shown once: (\S+)`)

// enter waits until the server is ready, and takes the first token from its log.
func (d *deployment) enter() {
	d.t.Helper()
	d.untilReady()

	require.Eventually(d.t, func() bool {
		found := firstToken.FindStringSubmatch(d.sh("docker compose logs server"))
		if found != nil {
			d.token = found[1]
		}

		return found != nil
	}, startTimeout, time.Second)

	var err error
	d.api, err = client.NewClientWithResponses(d.url+"/api/v1", client.WithHTTPClient(&http.Client{Timeout: answerTimeout}),
		client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+d.token)

			return nil
		}))
	require.NoError(d.t, err)
}

// untilReady waits until the server answers that it is.
func (d *deployment) untilReady() {
	d.t.Helper()

	require.Eventually(d.t, func() bool {
		status, _ := d.get("/readyz")

		return status == http.StatusOK
	}, startTimeout, tick, "the server is not ready")
}

// untilHosts waits until n hosts answer, and Berth reports no problem.
func (d *deployment) untilHosts(n int) {
	d.t.Helper()

	want, last := fmt.Sprintf("%d of %d hosts answer", n, n), ""

	require.Eventually(d.t, func() bool {
		status, body := d.get("/healthz")
		last = body

		return status == http.StatusOK && strings.Contains(body, want)
	}, startTimeout, tick, "%s", &last)
}

// get asks the server as the owner of the token. Status 0 is no answer.
func (d *deployment) get(path string) (status int, body string) {
	request, err := http.NewRequest(http.MethodGet, d.url+path, http.NoBody) //nolint:noctx // the client has a timeout
	require.NoError(d.t, err)
	request.Header.Set("Authorization", "Bearer "+d.token)

	response, err := (&http.Client{Timeout: answerTimeout}).Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close() //nolint:errcheck // read to its end

	return response.StatusCode, readAll(response.Body)
}

// cli runs berth's command line against the server.
func (d *deployment) cli(args ...string) string {
	d.t.Helper()

	cmd := exec.CommandContext(d.t.Context(), binary, args...)
	cmd.Env = append(d.environment(), "BERTH_SERVER="+d.url, "BERTH_TOKEN="+d.token)

	out, err := cmd.CombinedOutput()
	require.NoError(d.t, err, string(out))

	return string(out)
}

// clean stops everything, containers of trials too, and prints a failed test's
// history.
func (d *deployment) clean() {
	if d.t.Failed() {
		if out, err := d.try("docker compose ps --all; docker compose logs --tail 80 server worker migrate temporal-namespace postgres"); err == nil {
			d.t.Log(out)
		}
	}

	if _, err := os.Stat(filepath.Join(d.dir, ".env")); err == nil {
		out, err := d.try("docker compose down --volumes --timeout 30")
		if err != nil {
			d.t.Errorf("stopping: %v\n%s", err, out)
		}
	}

	// By label, to include containers of another deployment's worker.
	out, err := d.try("docker ps --all --quiet --filter label=berth.instance=" + d.instance + " | xargs --no-run-if-empty docker rm --force")
	if err != nil {
		d.t.Errorf("removing containers of trials: %v\n%s", err, out)
	}

	if err := os.RemoveAll(d.dir); err != nil {
		d.t.Errorf("removing the directory: %v", err)
	}
}
