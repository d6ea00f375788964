package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/docker"
	"github.com/berthml/berth/internal/firewall"
)

// plainWall answers as it is told, and counts.
type plainWall struct {
	cannot, fails error
	changed       bool
	closed        int
	told          chan int // gets closed, where there is one
}

func (w *plainWall) possible(context.Context) error { return w.cannot }

func (w *plainWall) close(context.Context) (docker.Network, bool, error) {
	w.closed++

	if w.told != nil {
		w.told <- w.closed
	}

	return docker.Network{Name: docker.TrialNetwork, Bridge: "berth0"}, w.changed, w.fails
}

func guardOf(mode string, w wall) (*metadataGuard, *bytes.Buffer) {
	var log bytes.Buffer

	return &metadataGuard{mode: mode, wall: w, log: slog.New(slog.NewTextHandler(&log, nil))}, &log
}

func TestMetadataGuard_Chooses(t *testing.T) {
	t.Parallel()

	cannot := berth.Errorf(berth.KindInvalid, "iptables is not installed")
	busy := berth.Errorf(berth.KindUnavailable, "it is busy")

	for name, c := range map[string]struct {
		mode string
		wall plainWall
		on   string // the network; empty = an error
		says string // the log, or the error
	}{
		"off":                                 {blockOff, plainWall{}, docker.DefaultNetwork, ""},
		"auto, it can":                        {blockAuto, plainWall{changed: true}, docker.TrialNetwork, "rejects what trials with a network send"},
		"auto, it did":                        {blockAuto, plainWall{}, docker.TrialNetwork, ""},
		"auto, it cannot":                     {blockAuto, plainWall{cannot: cannot}, docker.DefaultNetwork, "iptables -I DOCKER-USER"},
		"auto, no network is made":            {blockAuto, plainWall{fails: errors.New("no free subnet")}, docker.DefaultNetwork, "no free subnet"},
		"auto, another program changes rules": {blockAuto, plainWall{fails: busy}, "", "it is busy"},
		"auto, Docker is away":                {blockAuto, plainWall{cannot: busy}, "", "it is busy"},
		"require, it can":                     {blockRequire, plainWall{}, docker.TrialNetwork, ""},
		"require, it cannot":                  {blockRequire, plainWall{cannot: cannot}, "", "--block-metadata=require"},
		"require, no network is made":         {blockRequire, plainWall{fails: errors.New("no free subnet")}, "", "no free subnet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			guard, log := guardOf(c.mode, &c.wall)
			on, err := guard.network(t.Context())

			if c.on == "" {
				require.ErrorContains(t, err, c.says)

				return
			}

			require.NoError(t, err)
			require.Equal(t, c.on, on)
			require.Contains(t, log.String(), c.says)
			require.Equal(t, c.says == "", log.Len() == 0, log)
		})
	}
}

// What was closed once stays closed: an error keeps a trial from starting then. What
// cannot be closed is said once.
func TestMetadataGuard_Remembers(t *testing.T) {
	t.Parallel()

	w := &plainWall{}
	guard, _ := guardOf(blockAuto, w)

	for range 2 {
		_, err := guard.network(t.Context())
		require.NoError(t, err)
	}

	require.Equal(t, 2, w.closed, "it is looked at before each start")

	w.fails = errors.New("iptables is gone")
	_, err := guard.network(t.Context())
	require.ErrorContains(t, err, "iptables is gone")

	guard, log := guardOf(blockAuto, &plainWall{cannot: errors.New("not root")})

	for range 2 {
		on, err := guard.network(t.Context())
		require.NoError(t, err)
		require.Equal(t, docker.DefaultNetwork, on)
	}

	require.Equal(t, 1, strings.Count(log.String(), "not root"))

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the worker ends"))

	guard, _ = guardOf(blockAuto, &plainWall{cannot: errors.New("killed")})
	_, err = guard.network(ctx)
	require.EqualError(t, err, "the worker ends", "which says nothing of the machine")
}

// Once a trial has asked for a network, the rules are looked after without another.
func TestMetadataGuard_Watches(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	w := &plainWall{told: make(chan int, 1)}
	guard, _ := guardOf(blockAuto, w)
	ended := make(chan error)

	go func() { ended <- guard.watch(ctx, time.Millisecond) }()

	_, err := guard.network(ctx)
	require.NoError(t, err)

	for want := range 3 {
		require.Equal(t, want+1, <-w.told)
	}

	cancel()

	for waits := true; waits; {
		select {
		case <-w.told:
		case err := <-ended:
			require.ErrorIs(t, err, context.Canceled)

			waits = false
		}
	}
}

func TestDoctor_SaysWhetherMetadataCanBeBlocked(t *testing.T) {
	t.Parallel()

	in := func(context.Context) bool { return true }
	out := func(context.Context) bool { return false }
	cannot := &plainWall{cannot: errors.New("not root")}

	f := checkMetadata(t.Context(), &plainWall{}, in)
	require.True(t, f.OK && !f.Warn)

	f = checkMetadata(t.Context(), cannot, out)
	require.True(t, f.OK && !f.Warn, "there is nothing to fix")
	require.Contains(t, f.What, "not root")

	f = checkMetadata(t.Context(), cannot, in)
	require.True(t, f.OK && f.Warn)
	require.Contains(t, f.What, "not root")
	require.Contains(t, f.Next, firewall.ByHand)
}

func TestWorker_RefusesAnotherWayToBlock(t *testing.T) {
	t.Parallel()

	require.ErrorContains(t, (&machine{blockMetadata: "yes"}).check(), `--block-metadata "yes" must be auto, require or off`)
}

func TestWorker_ChecksTheProxy(t *testing.T) {
	t.Parallel()

	for proxy, says := range map[string]string{
		"": "", "http://10.0.0.1:3128": "", "https://proxy.example": "",
		"10.0.0.1:3128": "must be a URL", "socks5://10.0.0.1": "must be a URL", "http://": "must be a URL",
		"http://ada:secret@10.0.0.1:3128": "no name and password",
	} {
		err := checkProxy(proxy)
		if says == "" {
			require.NoError(t, err, proxy)
		} else {
			require.ErrorContains(t, err, says, proxy)
			require.NotContains(t, err.Error(), "secret")
		}
	}
}
