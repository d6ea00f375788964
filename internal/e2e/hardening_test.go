//go:build integration

package e2e

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// log is all an attempt printed.
func (s *stack) log(attemptID string) string {
	s.t.Helper()

	response, err := s.api.ReadLogWithResponse(s.t.Context(), attemptID, &client.ReadLogParams{})
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, response.StatusCode(), string(response.Body))

	return string(response.Body)
}

// TestHardening shows the fence around a job from inside, through everything
// that a real job goes through.
func TestHardening(t *testing.T) {
	t.Parallel()

	s := start(t, "--cpus", "8", "--memory", "3GiB")

	t.Run("from inside", func(t *testing.T) {
		t.Parallel()
		s.on(t).fromInside()
	})
	t.Run("values arrive as they are", func(t *testing.T) {
		t.Parallel()
		s.on(t).literally()
	})
	t.Run("what is not there is not found", func(t *testing.T) {
		t.Parallel()
		s.on(t).unknown()
	})
	t.Run("an image that preloads is refused", func(t *testing.T) {
		t.Parallel()
		s.on(t).preloads()
	})
}

func (s *stack) fromInside() {
	s.t.Helper()

	// Two at once, so that there is another trial's directory not to see.
	id := s.submit(strings.Replace(one("[/busy, fence]", fromStdout), "values: [1]", "values: [1, 2]", 1))
	sweep := s.until(id, time.Minute, ended)
	require.Equal(s.t, 2, sweep.Counts.Succeeded)

	for _, a := range s.attempts(id) {
		_, text, found := strings.Cut(s.log(a.ID), "FENCE ")
		require.True(s.t, found)

		text, _, _ = strings.Cut(text, "\n")

		var facts map[string]any

		require.NoError(s.t, json.Unmarshal([]byte(text), &facts), text)

		says := func(name string) string {
			what, ok := facts[name].(string)
			require.True(s.t, ok, name)

			return what
		}

		for _, line := range []string{
			"Uid:\t65532\t65532\t65532\t65532", "Gid:\t65532\t65532\t65532\t65532", "Groups:\t65532", "NoNewPrivs:\t1", "Seccomp:\t2",
			"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
			"CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000",
		} {
			require.Contains(s.t, says("/proc/self/status"), line)
		}

		require.Regexp(s.t, `Max core file size +0 +0`, says("/proc/self/limits"))
		require.Regexp(s.t, `Max open files +16384 +16384`, says("/proc/self/limits"))
		require.Contains(s.t, says("/sys/fs/cgroup/pids/pids.max")+says("/sys/fs/cgroup/pids.max"),
			strconv.Itoa(max(512, 16*runtime.NumCPU()))+"\n", "version 1 or 2")

		require.Contains(s.t, says("root"), "read-only file system")
		require.Contains(s.t, says("in"), "read-only file system")
		require.Contains(s.t, says("exec in /tmp"), "permission denied")
		require.Contains(s.t, says("mount"), "operation not permitted")
		require.Contains(s.t, says("setuid"), "operation not permitted")
		require.Contains(s.t, says("bpf"), "operation not permitted")

		require.Equal(s.t, []any{"lo"}, facts["interfaces"])
		require.Equal(s.t, []any{"/trial/cache", "/trial/checkpoint", "/trial/in", "/trial/out", "/trial/shim", "/trial/shim-out"}, facts["trial"], "and nothing of another trial")
		require.NotContains(s.t, text, "docker.sock", "nothing of Docker is there to be seen")
		require.NotContains(s.t, text, `"sees `)
		require.NotContains(s.t, says("/proc/mounts"), s.dir)
	}
}

// literally passes values that a shell would run or an option parser take.
func (s *stack) literally() {
	s.t.Helper()

	values := []string{
		";rm -rf /", "$(touch /trial/out/x)", "`id`", "a b", "-rf", "", "*", `'"\`, "${HOME}", "{{x",
	}
	list, err := json.Marshal(values)
	require.NoError(s.t, err)

	id := s.submit(strings.Replace(one(`[/busy, args, "--x={{v}}", "<{{v}}>"]`, fromStdout),
		"{name: n, values: [1]}", "{name: v, type: categorical, values: "+string(list)+"}", 1))
	s.until(id, 2*time.Minute, ended)

	seen := map[string]bool{}

	for _, a := range s.attempts(id) {
		require.Equal(s.t, "ok", a.FailureKind, a.Message)

		line, _, _ := strings.Cut(s.log(a.ID), "\n")

		var argv []string

		require.NoError(s.t, json.Unmarshal([]byte(line), &argv), line)
		require.Len(s.t, argv, 2, line)

		value, found := strings.CutPrefix(argv[0], "--x=")
		require.True(s.t, found)
		require.Equal(s.t, "<"+value+">", argv[1])
		seen[value] = true
	}

	for _, value := range values {
		require.True(s.t, seen[value], "%q did not arrive as it is", value)
	}

	refused := s.refused(strings.Replace(one(`[/busy, args, "{{v}}"]`, fromStdout),
		"{name: n, values: [1]}", "{name: v, type: categorical, values: ['-rf', a]}", 1))
	require.Contains(s.t, refused, "E_ARG_DASH")

	for _, variable := range []string{"LD_PRELOAD", "LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY", "TRIAL_ID"} {
		require.Contains(s.t, s.refused(one("[/busy]", fromStdout, "environment_variables: {"+variable+": x}")), "E_ENV_DENIED", variable)
	}
}

// unknown asks the real database for ids that do not exist.
func (s *stack) unknown() {
	s.t.Helper()

	for _, id := range []string{uuid.NewString(), "ffffffff", "%00", "'", "..%2f.."} {
		for _, path := range []string{
			"sweeps/ID", "sweeps/ID/trials", "sweeps/ID/attempts", "sweeps/ID/trials/1", "sweeps/ID/trials/1/attempts",
			"attempts/ID", "attempts/ID/log", "attempts/ID/metrics", "hosts/ID", "probes/ID", "events?sweep_id=ID",
		} {
			request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/api/v1/"+strings.ReplaceAll(path, "ID", id), http.NoBody)
			require.NoError(s.t, err)

			response, err := http.DefaultClient.Do(request)
			require.NoError(s.t, err)
			require.NoError(s.t, response.Body.Close())
			require.Contains(s.t, []int{http.StatusNotFound, http.StatusBadRequest}, response.StatusCode, "%s with %s", path, id)
		}
	}
}

func (s *stack) preloads() {
	s.t.Helper()

	for _, variable := range []string{"LD_PRELOAD", "LD_AUDIT"} {
		image := "berth-test/" + strings.ToLower(variable) + ":" + uuid.NewString()[:8]
		made := exec.CommandContext(s.t.Context(), "bash", "-c",
			`tar -c -T /dev/null | docker import --change "ENV $1=/evil.so" - "$2"`, "bash", variable, image)
		out, err := made.CombinedOutput()
		require.NoError(s.t, err, string(out))
		s.t.Cleanup(func() { _ = exec.Command("docker", "rmi", image).Run() }) //nolint:noctx // answers at once

		why := s.refused(strings.Replace(one("[/busy]", fromStdout), "berth-test/busy:1", image, 1))
		require.Contains(s.t, why, "E_IMAGE_ENV")
		require.Contains(s.t, why, variable)
		require.Contains(s.t, why, "build it without")
	}
}
