//go:build integration

package e2e

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// TestTrialProxy: a trial with a network uses the worker's proxy for its downloads,
// through a library that reads the environment.
func TestTrialProxy(t *testing.T) {
	t.Parallel()

	s := &stack{t: t}
	bridge, err := net.InterfaceByName("docker0") // Docker names no gateway where the bridge outlived a daemon
	require.NoError(t, err)
	addresses, err := bridge.Addrs()
	require.NoError(t, err)
	gateway, _, err := net.ParseCIDR(addresses[0].String())
	require.NoError(t, err)

	listener, err := net.Listen("tcp", net.JoinHostPort(gateway.String(), "0")) //nolint:noctx // at once
	require.NoError(t, err)

	proxy := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() == "http://nowhere.test/data" {
			_, _ = io.WriteString(w, "through the proxy")
		}
	})}
	go proxy.Serve(listener) //nolint:errcheck // until it is closed

	t.Cleanup(func() { _ = proxy.Close() })

	s.flags = []string{"--trial-proxy", "http://" + listener.Addr().String()}
	s.begin()

	id := s.submit(`
name: loads
image: berth-examples/python:3.11
network: true
command:
  - python3
  - -c
  - |
    import urllib.request
    print(urllib.request.urlopen("http://nowhere.test/data").read().decode())
    print("acc=1", flush=True)
  - "{{n}}"
parameters: [{name: n, values: [1]}]
objective: {metric: acc, goal: maximize}
limits: {max_trials: 1}
metrics: {source: stdout}
`)
	sweep := s.until(id, time.Minute, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, "%s: %s", sweep.Reason, s.trials(id)[0].Message)
	require.Contains(t, s.log(s.attempts(id)[0].ID), "through the proxy")
}
