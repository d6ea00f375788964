package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// composed is what a compose file says of its services.
func composed(t *testing.T, name string) map[string]map[string]any {
	t.Helper()

	data, err := os.ReadFile(filepath.Join("..", "..", name))
	require.NoError(t, err)

	var file struct {
		Services map[string]map[string]any `yaml:"services"`
	}

	require.NoError(t, yaml.Unmarshal(data, &file))

	return file.Services
}

// The worker of a further machine is that of the first, but for what it waits for
// and how it finds PostgreSQL and Temporal.
func TestCompose_FurtherMachinesHaveTheSameWorker(t *testing.T) {
	t.Parallel()

	first, further := composed(t, "docker-compose.yml")["worker"], composed(t, "docker-compose.worker.yml")["worker"]

	env := func(worker map[string]any) map[string]any {
		values, ok := worker["environment"].(map[string]any)
		require.True(t, ok)
		require.NotEmpty(t, values["BERTH_POSTGRES_URL"])
		require.NotEmpty(t, values["BERTH_TEMPORAL_ADDRESS"])
		delete(values, "BERTH_POSTGRES_URL")
		delete(values, "BERTH_TEMPORAL_ADDRESS")

		return values
	}
	require.Equal(t, env(first), env(further))

	for _, worker := range []map[string]any{first, further} {
		delete(worker, "environment")
		delete(worker, "depends_on")
	}

	require.Equal(t, first, further)
}

// Docker kills what has not ended 10 s after SIGTERM by default, and a worker
// leaves its activities 20 s (stopTimeout in worker/worker.go).
func TestCompose_ProcessesMayEndInOrder(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"server", "worker"} {
		text, ok := composed(t, "docker-compose.yml")[name]["stop_grace_period"].(string)
		require.True(t, ok, name)

		grace, err := time.ParseDuration(text)
		require.NoError(t, err)
		require.Greater(t, grace, 30*time.Second, name)
	}
}

// PostgreSQL's image answers on its socket while it makes the databases, and
// stops once more: only by TCP is it there for good.
func TestCompose_PostgresIsHealthyOnceItServes(t *testing.T) {
	t.Parallel()

	check, ok := composed(t, "docker-compose.yml")["postgres"]["healthcheck"].(map[string]any)
	require.True(t, ok)
	require.Contains(t, check["test"], "pg_isready -h 127.0.0.1 -U postgres")
}

// docs/production.md tells people to type `docker compose exec server berth …`.
func TestCompose_TheImageHasBerthOnItsPath(t *testing.T) {
	t.Parallel()

	for _, name := range []string{"Dockerfile", filepath.Join("scripts", "compose-images")} {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		require.NoError(t, err)
		require.Contains(t, string(text), "RUN ln -s /berth /usr/local/bin/berth\n", name)
		require.Contains(t, string(text), `ENTRYPOINT ["/berth"]`, name)
	}
}
