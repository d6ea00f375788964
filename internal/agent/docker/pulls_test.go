package docker

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func unheard(string) {}

// daemon stands for a Docker whose pulls are what the test says; nil = its registry is silent.
func daemon(t *testing.T, create http.HandlerFunc) *Docker {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())

	return answering(t, func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasSuffix(r.URL.Path, "/images/create"):
			create(w, r)
		case strings.Contains(r.URL.Path, "/distribution/") && create == nil:
			<-r.Context().Done()
		case strings.Contains(r.URL.Path, "/distribution/"):
			_, _ = w.Write([]byte(`{"Descriptor":{"digest":"` + someDigest + `"},"Platforms":[{"os":"linux","architecture":"amd64"}]}`))
		case strings.HasSuffix(r.URL.Path, "/version"):
			_, _ = w.Write([]byte(`{"Os":"linux","Arch":"amd64"}`))
		default:
			return false
		}

		return true
	})
}

// say sends a line of a pull.
func say(w http.ResponseWriter, line string) {
	_, _ = w.Write([]byte(line + "\n"))
	_ = http.NewResponseController(w).Flush()
}

// requirePullError requires the error of a pull, for a reason and with a detail.
func requirePullError(t *testing.T, err error, reason berth.PullReason, detail string) {
	t.Helper()

	why, ok := errors.AsType[*berth.PullError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, reason, why.Reason)
	require.Contains(t, why.Detail, detail)
}

// A Docker whose registry takes the question and says nothing: the pull has failed after
// Stall, although Docker has not begun it.
func TestPulls_SilentRegistryStalls(t *testing.T) { //nolint:paralleltest // it sets the environment
	d := daemon(t, nil)

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	err := NewPulls(d, PullConfig{Stall: time.Second}).Pull(ctx, "registry.example/team/a@"+someDigest, unheard)
	requirePullError(t, err, berth.PullTimeout, "no byte of it arrived from registry.example for 1s")
}

// Docker that is restarted in the middle of a pull is Docker, and not the registry.
func TestPulls_DockerThatGoes(t *testing.T) { //nolint:paralleltest // it sets the environment
	d := daemon(t, func(w http.ResponseWriter, _ *http.Request) {
		say(w, `{"status":"Pulling fs layer","id":"a"}`)
		say(w, `{"status":"Downloading","id":"a","progressDetail":{"current":1,"total":9}}`)

		panic(http.ErrAbortHandler) // it was restarted
	})

	err := NewPulls(d, PullConfig{}).Pull(t.Context(), "127.0.0.1:1/team/a@"+someDigest, unheard)
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "Docker does not answer")
	require.NotContains(t, err.Error(), "its registry")
}

// A pull whose bytes came until its time was over was slow, and its registry did answer.
func TestPull_Slow(t *testing.T) { //nolint:paralleltest // it sets the environment
	d := daemon(t, func(w http.ResponseWriter, r *http.Request) {
		for i := 1; r.Context().Err() == nil; i++ {
			say(w, `{"status":"Downloading","id":"a","progressDetail":{"current":`+strconv.Itoa(i<<20)+`,"total":1073741824}}`)

			select {
			case <-time.After(20 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
	})

	var last string

	err := d.pull(t.Context(), "127.0.0.1:1/team/a@"+someDigest, PullConfig{Stall: time.Minute, Longest: 2 * time.Second}, func(progress string) { last = progress })
	require.Contains(t, last, " MiB of 1,024 MiB")
	requirePullError(t, err, berth.PullTimeout, "it was not here after 2s")
}

// A pull does not fill the disk that the host needs: it ends at the headroom.
func TestPull_FullDisk(t *testing.T) { //nolint:paralleltest // it sets the environment
	d := daemon(t, func(w http.ResponseWriter, r *http.Request) {
		say(w, `{"status":"Downloading","id":"a","progressDetail":{"current":1,"total":9}}`)
		<-r.Context().Done()
	})

	err := NewPulls(d, PullConfig{Room: func() (int64, error) { return -1, nil }}).Pull(t.Context(), "127.0.0.1:1/team/a@"+someDigest, unheard)
	requirePullError(t, err, berth.PullDiskFull, "")
}

// Many trials of a host ask a registry that refuses them once.
func TestPulls_AFailureAnswersFurtherCalls(t *testing.T) { //nolint:paralleltest // it sets the environment
	var asked atomic.Int32

	d := daemon(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		say(w, `{"error":"toomanyrequests: You have reached your pull rate limit"}`)
	})
	pulls, image := NewPulls(d, PullConfig{}), "127.0.0.1:1/team/a@"+someDigest

	for range 3 {
		require.ErrorContains(t, pulls.Pull(t.Context(), image, unheard), "toomanyrequests")
	}

	require.Equal(t, int32(1), asked.Load())

	pulls.flights[image].ended = time.Now().Add(-pullPause)
	require.Error(t, pulls.Pull(t.Context(), image, unheard))
	require.Equal(t, int32(2), asked.Load(), "but after a pause")
}
