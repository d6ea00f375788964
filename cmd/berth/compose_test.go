package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// composed returns a compose file's settings of its services.
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

// The worker of a further machine equals the first one's, with three differences:
// its dependencies, the addresses of PostgreSQL and Temporal, and that the first
// machine may have no worker.
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
		delete(worker, "deploy")
	}

	require.Equal(t, first, further)
}

// By default Docker makes a directory in place of a missing file: `berth secret key`
// would then refuse the name, and the server the directory.
func TestCompose_NoFileOfTheAdministratorIsMadeUp(t *testing.T) {
	t.Parallel()

	found := 0

	for _, file := range []string{"docker-compose.yml", "docker-compose.worker.yml"} {
		for name, service := range composed(t, file) {
			volumes, _ := service["volumes"].([]any)
			for _, volume := range volumes {
				if text := fmt.Sprint(volume); !strings.Contains(text, "BERTH_SECRETS_KEY") && !strings.Contains(text, "BERTH_TLS") {
					continue
				}

				mount, ok := volume.(map[string]any)
				require.True(t, ok, "%s, %s: %v is not of the long form", file, name, volume)
				require.Equal(t, map[string]any{"create_host_path": false}, mount["bind"], "%s, %s: %v", file, name, volume)
				require.Equal(t, true, mount["read_only"])

				found++
			}
		}
	}

	require.Equal(t, 4, found, "server, worker and the further machine's worker have the key; the server has its certificate")
}

// An .env.example without the passwords of the roles gives an installation that works:
// a role is used when it has a password.
func TestCompose_ARoleGoesWithItsPassword(t *testing.T) {
	t.Parallel()

	services := composed(t, "docker-compose.yml")
	for _, name := range []string{"server", "worker"} {
		env, ok := services[name]["environment"].(map[string]any)
		require.True(t, ok)

		password := "BERTH_" + strings.ToUpper(name) + "_DB_PASSWORD"
		require.Equal(t, "postgres://berth${"+password+":+_"+name+"}:${"+password+":-${BERTH_DB_PASSWORD}}@postgres:5432/berth?sslmode=disable", env["BERTH_POSTGRES_URL"])

		env, ok = services["migrate"]["environment"].(map[string]any)
		require.True(t, ok)
		require.Equal(t, "${"+password+":+berth_"+name+"}", env["BERTH_GRANT_"+strings.ToUpper(name)])
	}
}

// docs/production.md tells all that .env may say.
func TestCompose_EachSettingIsDocumented(t *testing.T) {
	t.Parallel()

	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "production.md"))
	require.NoError(t, err)

	files, err := filepath.Glob(filepath.Join("..", "..", "docker-compose*.yml"))
	require.NoError(t, err)
	require.Len(t, files, 4)

	var told []string
	for _, match := range regexp.MustCompile("`([A-Z_]+)`").FindAllStringSubmatch(string(page), -1) {
		told = append(told, match[1])
	}

	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)

		for _, match := range regexp.MustCompile(`\$\{([A-Z_]+)`).FindAllStringSubmatch(string(text), -1) {
			require.Subset(t, told, []string{match[1]}, file)
		}
	}
}

// Docker kills a container 10 s after SIGTERM by default, and a worker leaves
// its activities 20 s (stopTimeout in worker/worker.go).
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

// The worker of a machine with GPUs has NVIDIA's library, and a program that can call it: not
// MPS, whose daemons would end with the container, and their clients with them.
func TestCompose_GPUs(t *testing.T) {
	t.Parallel()

	worker := composed(t, "docker-compose.gpus.yml")["worker"]
	require.Equal(t, "all", worker["gpus"])
	require.Equal(t, map[string]any{"NVIDIA_DRIVER_CAPABILITIES": "utility"}, worker["environment"])

	image, err := os.ReadFile(filepath.Join("..", "..", "Dockerfile"))
	require.NoError(t, err)
	require.Contains(t, string(image), "CGO_ENABLED=1 CGO_LDFLAGS='-O2 -g -Wl,-z,lazy'")
	require.NotContains(t, string(image), "scratch", "the loader of the C library finds NVIDIA's")
}
