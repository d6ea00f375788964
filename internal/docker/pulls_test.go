package docker

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func unheard(berth.PullProgress) {}

// daemon stands for a Docker whose pulls are what the test says.
func daemon(t *testing.T, create http.HandlerFunc) *Docker {
	t.Helper()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.44")
		w.Header().Set("Content-Type", "application/json")

		switch {
		case strings.HasSuffix(r.URL.Path, "/images/create"):
			create(w, r)
		case strings.Contains(r.URL.Path, "/distribution/"):
			_, _ = w.Write([]byte(`{"Descriptor":{"digest":"` + someDigest + `"},"Platforms":[{"os":"linux","architecture":"amd64"}]}`))
		default:
			_, _ = w.Write([]byte(`{"Os":"linux","Arch":"amd64","ApiVersion":"1.44"}`))
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("DOCKER_HOST", strings.Replace(server.URL, "http://", "tcp://", 1))
	t.Setenv("DOCKER_CONFIG", t.TempDir())

	return setup(t)
}

// say sends a line of a pull.
func say(w http.ResponseWriter, line string) {
	_, _ = w.Write([]byte(line + "\n"))
	_ = http.NewResponseController(w).Flush()
}

// A Docker whose registry takes the question and says nothing: the pull has failed after
// Stall, although Docker has not begun it.
func TestPulls_SilentRegistryStalls(t *testing.T) {
	over := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/distribution/") {
			select {
			case <-over:
			case <-r.Context().Done():
			}

			return
		}

		w.Header().Set("Api-Version", "1.44")
		say(w, `{"Os":"linux","Arch":"amd64","ApiVersion":"1.44"}`)
	}))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(over) })
	t.Setenv("DOCKER_HOST", strings.Replace(silent.URL, "http://", "tcp://", 1))
	t.Setenv("DOCKER_CONFIG", t.TempDir())

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	err := NewPulls(setup(t), PullConfig{Stall: time.Second}).Pull(ctx, "registry.example/team/a@"+someDigest, unheard)

	why, ok := errors.AsType[*berth.PullError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, berth.PullStalled, why.Reason)
	require.Equal(t, "no byte of it arrived from registry.example for 1s", why.Detail)
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

	hour, cancel := context.WithTimeout(t.Context(), 2*time.Second) // pullLongest
	defer cancel()

	var last berth.PullProgress

	err := d.pull(hour, "127.0.0.1:1/team/a@"+someDigest, PullConfig{Stall: time.Minute}, func(p berth.PullProgress) { last = p })
	require.Positive(t, last.DoneBytes)

	why, ok := errors.AsType[*berth.PullError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, berth.PullSlow, why.Reason)
	require.Equal(t, "it was not here after 2s: "+last.Text(), why.Detail)
}

// Two images that fit only one at a time do not break each other off: the second is not
// begun while the first still needs the disk, and then is.
func TestPulls_Admit(t *testing.T) {
	t.Parallel()

	var (
		mu   sync.Mutex
		free int64 = 1000
	)

	p := NewPulls(setup(t), PullConfig{Room: func() (int64, error) {
		mu.Lock()
		defer mu.Unlock()

		return free, nil
	}})
	began := func(image string, progress berth.PullProgress) *flight {
		f := &flight{}
		f.progress.Store(&progress)
		p.going[image] = f

		return f
	}
	admits := func(f *flight, need, wantHave int64, want bool) {
		t.Helper()

		have, ok := p.admit(f, need)
		require.Equal(t, wantHave, have)
		require.Equal(t, want, ok)
	}

	a, b := began("a", berth.PullProgress{TotalBytes: 200}), began("b", berth.PullProgress{TotalBytes: 100})
	admits(a, 700, 1000, true)
	admits(b, 350, 300, false)

	free = 700 // of a, all is downloaded, and 100 of it is unpacked, to 250, and its archive removed
	a.progress.Store(&berth.PullProgress{TotalBytes: 200, DoneBytes: 200, UnpackedBytes: 100})
	admits(b, 350, 450, true)

	c := began("c", berth.PullProgress{TotalBytes: 50})
	admits(c, 175, 100, false)

	delete(p.going, "a")
	admits(c, 175, 350, true)
}
