//go:build integration

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// leaky prints its secret in every way that a log cuts, and waits for the test twice.
// Its last words are an exception with the secret and a marker, which the database and
// Temporal are to have.
const leaky = `
name: leaky
image: berth-examples/python:3.11
command:
  - python3
  - -c
  - |
    import base64, hashlib, os, sys, time
    v = open("/run/secrets/hub").read()
    def wait(path):
        while not os.path.exists(path): time.sleep(0.05)
    print("sha", hashlib.sha256(v.encode()).hexdigest(), flush=True)
    print("mode", oct(os.stat("/run/secrets/hub").st_mode & 0o777), os.access("/run/secrets/hub", os.W_OK), flush=True)
    print("whole", v, flush=True)
    print("base64", base64.b64encode(v.encode()).decode(), flush=True)
    print(v + "=0.5", "acc=0.5", flush=True)
    sys.stdout.write("halves " + v[:9]); sys.stdout.flush(); time.sleep(0.7); print(v[9:], flush=True)
    time.sleep(1)  # else Docker may write the line above between both parts of the next
    print("x" * 16380 + v, file=sys.stderr, flush=True)
    wait("/tmp/go")
    print("alone", v, flush=True)
    wait("/tmp/end")
    raise ValueError("bad token " + v + " of MARKER")
  - "{{n}}"
parameters: [{name: n, values: [1]}]
objective: {metric: acc, goal: maximize}
limits: {max_trials: 1}
metrics: {source: stdout}
secrets: [{name: hub_token, file: /run/secrets/hub}]
`

// TestSecrets: a trial has a secret as a file, and its value is nowhere else: not in
// PostgreSQL's files, Temporal's database, logs, the container's inspection or an
// answer.
func TestSecrets(t *testing.T) {
	t.Parallel()

	s := plain(t)
	value, marker := "hf_"+strings.ReplaceAll(uuid.NewString(), "-", ""), "marker-"+uuid.NewString()
	stars := strings.Repeat("*", len(value))
	file := strings.Replace(leaky, "MARKER", marker, 1)

	require.Contains(t, s.refused(file), `there is no secret \"hub_token\" (none is stored); an administrator stores it with `)
	s.setSecret("hub_token", value)
	require.Contains(t, s.refused(strings.Replace(file, "name: hub_token", "name: hub_tokne", 1)), `there is no secret \"hub_tokne\" (there are: hub_token)`)

	id := s.submit(file)
	require.Eventually(t, func() bool { return len(s.running(id)) == 1 }, patience, tick)

	box := s.running(id)[0]
	attempt := s.attempts(id)[0].ID
	s.untilLog(attempt, "xxx"+stars)

	inspected, err := s.docker("inspect", box.id).Output()
	require.NoError(t, err)
	require.Contains(t, string(inspected), "/run/secrets/hub")
	s.requireNot("docker inspect", inspected, value)
	s.requireNowhere(value, filepath.Join(s.dir, "host")) // there it must be now

	secretFile := filepath.Join(s.dir, "host", "secrets", attempt, "hub_token")
	require.Equal(t, value, readFile(t, secretFile))

	kept, err := s.api.DeleteSecretWithResponse(t.Context(), "hub_token", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusConflict, kept.StatusCode())
	require.Contains(t, string(kept.Body), "leaky ("+id+")")

	// The running trial keeps its value.
	s.setSecret("hub_token", "another-value-of-it")
	s.touch(box, "/tmp/go")
	s.untilLog(attempt, "alone "+stars)
	s.touch(box, "/tmp/end")

	require.Equal(t, client.SweepStateFailed, s.until(id, patience, ended).State)

	sum := sha256.Sum256([]byte(value))
	log := s.log(attempt)
	require.Contains(t, log, "sha "+hex.EncodeToString(sum[:])+"\nmode 0o444 False\n")
	require.Contains(t, log, "whole "+stars+"\n")
	require.Contains(t, log, "halves "+stars+"\n")
	require.Contains(t, log, "\n"+strings.Repeat("x", 16380)+stars)
	require.Contains(t, log, "ValueError: bad token "+stars+" of "+marker)

	ran := s.attempts(id)
	require.Len(t, ran, 1)
	require.Equal(t, "user_error", ran[0].FailureKind)
	require.Contains(t, ran[0].Message, "bad token "+stars+" of "+marker)

	s.requireQuiet(id)
	require.NoFileExists(t, secretFile)
	require.NoDirExists(t, filepath.Dir(secretFile))

	for _, path := range []string{
		"/secrets", "/sweeps/" + id, "/sweeps/" + id + "/trials", "/sweeps/" + id + "/attempts", "/sweeps/" + id + "/report", "/sweeps/" + id + "/metric-names",
		"/attempts/" + attempt, "/attempts/" + attempt + "/log", "/attempts/" + attempt + "/metrics", "/sweeps/" + id + "/export?format=jsonl&what=metrics",
	} {
		s.requireNot(path, s.get(path), value)
	}

	found := s.requireNowhere(value)
	require.Positive(t, found(marker, "postgres"), "what the trial said is in PostgreSQL's files, so the search finds what is there")
	require.Positive(t, found(marker, "temporal"), "and in Temporal's")
}

// setSecret stores a secret as a person does.
func (s *stack) setSecret(name, value string) {
	s.t.Helper()

	cmd := exec.CommandContext(s.t.Context(), binary, "secret", "set", name, "--server", s.url)
	cmd.Stdin = strings.NewReader(value + "\n")
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, err, string(out))
	s.requireNot("berth secret set", out, value)
}

// touch makes a file in a container.
func (s *stack) touch(box container, path string) {
	s.t.Helper()

	// Detached: a program that waits for the file may end, and its container with touch in it, before touch does.
	out, err := s.docker("exec", "--detach", box.id, "touch", path).CombinedOutput()
	require.NoError(s.t, err, string(out))
}

// untilLog waits until a log has a text.
func (s *stack) untilLog(attempt, text string) {
	s.t.Helper()

	require.Eventually(s.t, func() bool { return strings.Contains(s.log(attempt), text) }, patience, tick, "%s", s.output("worker"))
}

// get is the API's answer.
func (s *stack) get(path string) []byte {
	s.t.Helper()

	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/api/v1"+path, http.NoBody)
	require.NoError(s.t, err)

	response, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer response.Body.Close() //nolint:errcheck // only read

	var body bytes.Buffer

	_, err = body.ReadFrom(response.Body)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, response.StatusCode, "%s: %s", path, body.String())

	return body.Bytes()
}

// requireNot fails when a text has a value, or its base64.
func (s *stack) requireNot(where string, text []byte, value string) {
	s.t.Helper()

	for _, form := range []string{value, strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(value)), "=")} {
		require.False(s.t, bytes.Contains(text, []byte(form)), "%s has the secret", where)
	}
}

// requireNowhere searches every file of the stack, PostgreSQL's and Temporal's
// included, except below the directories to skip. It returns a count of a
// directory's files with another text.
func (s *stack) requireNowhere(value string, skip ...string) func(text, dir string) int {
	s.t.Helper()

	postgresURL, _ := s.backends()
	out, err := exec.CommandContext(s.t.Context(), "psql", postgresURL, "-c", "CHECKPOINT").CombinedOutput()
	require.NoError(s.t, err, string(out))

	read := 0
	walk := func(dir string, look func(path string, data []byte)) {
		require.NoError(s.t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case os.IsNotExist(err): // PostgreSQL removes files during the walk
				return nil
			case err != nil:
				return err
			case entry.IsDir():
				if slices.Contains(skip, path) {
					return fs.SkipDir
				}

				return nil
			case !entry.Type().IsRegular():
				return nil
			}

			data, err := os.ReadFile(path) //nolint:gosec // G122: a directory of the test's own
			if err != nil && !os.IsNotExist(err) {
				return fmt.Errorf("reading: %w", err)
			}

			read++
			look(path, data)

			return nil
		}))
	}

	walk(s.dir, func(path string, data []byte) { s.requireNot(path, data, value) })
	require.Greater(s.t, read, 500, "the database has many files")

	return func(text, dir string) (found int) {
		walk(filepath.Join(s.dir, dir), func(_ string, data []byte) {
			if bytes.Contains(data, []byte(text)) {
				found++
			}
		})

		return found
	}
}
