//go:build integration

package e2e

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/agent/docker"
)

// percentile returns the p-th of unsorted times, 0 < p <= 1.
func percentile(times []time.Duration, p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))

	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}

func report(b *testing.B, times []time.Duration, name string) {
	b.Helper()

	for _, p := range []float64{0.5, 0.99} {
		b.ReportMetric(float64(percentile(times, p).Microseconds())/1000, name+"-p"+strconv.Itoa(int(100*p))+"-ms")
	}
}

// BenchmarkFreedToNext measures the time from a container's exit to the next
// one running on its place, with a search that does not learn and one that does, and, in
// the same run, how long Docker itself takes to create and start such a container.
func BenchmarkFreedToNext(b *testing.B) {
	const trials = 30

	s := start(b)

	for _, algorithm := range []string{"grid", "tpe, startup: 2"} {
		file := busy(trials, 300, small, "limits: {max_parallel: 1}")
		id := s.submit(strings.Replace(file, "algorithm: grid", "algorithm: "+algorithm, 1))
		require.Equal(b, trials, s.until(id, patience, ended).Counts.Succeeded)

		attempts := s.attempts(id)
		slices.SortFunc(attempts, func(x, y client.Attempt) int { return x.StartedAt.Compare(*y.StartedAt) })

		gaps := make([]time.Duration, 0, trials)
		for i := 1; i < len(attempts); i++ {
			gaps = append(gaps, attempts[i].StartedAt.Sub(*attempts[i-1].FinishedAt))
		}

		name, _, _ := strings.Cut(algorithm, ",")
		report(b, gaps, "freed-to-next-"+name)
	}

	report(b, createAndStart(b, trials), "docker")
	b.ReportMetric(0, "ns/op")
}

// createAndStart times Docker's own part of a launch.
func createAndStart(b *testing.B, n int) []time.Duration {
	b.Helper()

	d, err := docker.New(docker.Config{Instance: "bench-" + uuid.NewString()[:8], Owner: berth.Owner{HostID: "bench"}, BootID: "bench"})
	require.NoError(b, err)

	defer d.Close() //nolint:errcheck // only idle connections

	image, err := d.ResolveImage(b.Context(), "berth-test/busy:1")
	require.NoError(b, err)

	times := make([]time.Duration, n)

	for i := range times {
		launch := berth.Launch{
			AttemptID: uuid.NewString(), Image: image.ID, Command: []string{"/busy", "train", "300", "1"},
			MemoryBytes: 64 << 20, CPUMilli: 1000, Token: 1,
		}

		began := time.Now()
		made, err := d.Ensure(b.Context(), launch)
		times[i] = time.Since(began)

		require.NoError(b, err)

		_, err = d.Wait(b.Context(), made.ID)
		require.NoError(b, err)
		require.NoError(b, d.Remove(b.Context(), made.ID))
	}

	return times
}

// BenchmarkContainers measures how many real containers a second a sweep of
// trials that end at once gets through.
func BenchmarkContainers(b *testing.B) {
	const trials = 60

	s := start(b)
	id := s.submit(busy(trials, 0, half))
	sweep := s.until(id, patience, ended)
	require.Equal(b, trials, sweep.Counts.Succeeded)

	b.ReportMetric(trials/sweep.FinishedAt.Sub(sweep.CreatedAt).Seconds(), "containers/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkAPI measures GET of a page of 50 trials at 500 requests a second.
func BenchmarkAPI(b *testing.B) {
	const (
		rate  = 500
		lasts = 10 * time.Second
	)

	s := start(b, "--simulate", "1ms", "--cpus", "16")
	id := s.submit(busy(200, 0, small))
	s.until(id, patience, ended)

	url := s.url + "/api/v1/sweeps/" + id + "/trials?limit=50"
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 64 //nolint:forcetypeassert // it is one

	var (
		mu    sync.Mutex
		times []time.Duration
		group sync.WaitGroup
	)

	ticker := time.NewTicker(time.Second / rate)
	defer ticker.Stop()

	began := time.Now()

	for range int(lasts.Seconds()) * rate {
		due := <-ticker.C

		group.Go(func() {
			response, err := http.Get(url) //nolint:gosec,noctx // our own server
			if err != nil {
				b.Error(err)

				return
			}

			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()

			if response.StatusCode != http.StatusOK {
				b.Errorf("answered %s", response.Status)
			}

			mu.Lock()
			defer mu.Unlock()

			times = append(times, time.Since(due)) // waiting counts
		})
	}

	group.Wait()
	b.ReportMetric(float64(len(times))/time.Since(began).Seconds(), "requests/s")
	report(b, times, "get")
	b.ReportMetric(0, "ns/op")
}
