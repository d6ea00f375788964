//go:build integration

package e2e

import (
	"encoding/json"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

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

// The fence around a job from inside, through everything that a real job goes through.
func TestHardening(t *testing.T) {
	t.Parallel()

	s := plain(t)
	s.fromInside()
	s.literally()
}

func (s *stack) fromInside() {
	s.t.Helper()

	// Two at once, so that there is another trial's directory not to see.
	id := s.submit(strings.Replace(one("[/busy, fence]\nenvironment_variables: {N: '{{n}}'}"), "values: [1]", "values: [1, 2]", 1))
	sweep := s.until(id, patience, ended)
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

	id := s.submit(strings.Replace(one(`[/busy, args, "--x={{v}}", "<{{v}}>"]`),
		"{name: n, values: [1]}", "{name: v, type: categorical, values: "+string(list)+"}", 1))
	s.until(id, patience, ended)

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
}
