package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
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
	exists        bool // the network of trials
	changed       bool
	closed        int
	told          chan int // gets closed, where there is one
}

func (w *plainWall) possible(context.Context) (bool, error) { return w.exists, w.cannot }

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
		"auto, it cannot":                     {blockAuto, plainWall{cannot: cannot}, docker.DefaultNetwork, "unless a rule of yours blocks it"},
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

// A worker that starts anew looks after the trials of its predecessor, which are on the
// network that is there.
func TestMetadataGuard_LooksAfterAdoptedTrials(t *testing.T) {
	t.Parallel()

	busy := berth.Errorf(berth.KindUnavailable, "it is busy")
	cannot := berth.Errorf(berth.KindInvalid, "not root")

	for name, c := range map[string]struct {
		mode  string
		walls []plainWall // one for each look
		held  bool
		open  bool
		says  string
	}{
		"auto":                    {blockAuto, []plainWall{{exists: true, changed: true}}, true, false, "rejects what trials with a network send"},
		"auto, Docker was away":   {blockAuto, []plainWall{{exists: true, cannot: busy}, {exists: true}}, true, false, ""},
		"auto, iptables was busy": {blockAuto, []plainWall{{exists: true, fails: busy}, {exists: true}}, true, false, "cannot look at the rules"},
		"auto, it cannot":         {blockAuto, []plainWall{{exists: true, cannot: cannot}, {exists: true, cannot: cannot}}, false, true, "not root"},
		"auto, no trial before":   {blockAuto, []plainWall{{}, {exists: true}}, false, false, ""},
		"off":                     {blockOff, []plainWall{{exists: true}}, false, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			guard, log := guardOf(c.mode, nil)
			said := ""

			for i := range c.walls {
				guard.wall = &c.walls[i]
				said = guard.look(t.Context(), said)
			}

			require.Equal(t, c.held, guard.held)
			require.Equal(t, c.open, guard.open)
			require.Contains(t, log.String(), c.says)
			require.Equal(t, c.says == "", log.Len() == 0, log)
		})
	}
}

// What a look at the rules that are there tells: once, and no more than is known.
func TestMetadataGuard_Says(t *testing.T) {
	t.Parallel()

	w := &plainWall{changed: true}
	guard, log := guardOf(blockAuto, w)
	said := ""

	for range 5 { // another program puts its own rules first, again and again
		_, err := guard.network(t.Context())
		require.NoError(t, err)

		said = guard.look(t.Context(), said)
	}

	require.Equal(t, 10, w.closed, "they are put in again each time")
	require.Equal(t, 1, strings.Count(log.String(), "rejects what trials"))
	require.Equal(t, 1, strings.Count(log.String(), "says so only this once"))
	log.Reset()

	w.fails = berth.Errorf(berth.KindUnavailable, "Docker does not answer")
	for range 2 {
		said = guard.look(t.Context(), said)
	}

	require.Equal(t, 1, strings.Count(log.String(), "Docker does not answer"))
	require.Contains(t, log.String(), "level=WARN")
	require.NotContains(t, log.String(), "level=ERROR")

	w.fails = berth.Errorf(berth.KindInvalid, "iptables is gone")
	guard.look(t.Context(), said)
	require.Contains(t, log.String(), "level=ERROR")
	require.Contains(t, log.String(), "iptables is gone")
}

// patientWall is a plainWall that fails some times first.
type patientWall struct {
	plainWall

	left int
}

func (w *patientWall) close(ctx context.Context) (docker.Network, bool, error) {
	if w.left--; w.left < 0 {
		w.fails = nil
	}

	return w.plainWall.close(ctx)
}

// A worker that must block waits at boot for what is only busy, and says how to run it
// only where that helps.
func TestGuardMetadata_Require(t *testing.T) {
	t.Parallel()

	m := &machine{blockMetadata: blockRequire}
	busy := berth.Errorf(berth.KindUnavailable, "another program holds the lock")

	w := &patientWall{plainWall{fails: busy}, 2}
	guard, err := m.guardMetadata(t.Context(), w, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.True(t, guard.held)
	require.Equal(t, 3, w.closed)

	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan int)
	ended := make(chan error)

	go func() {
		_, err := m.guardMetadata(ctx, &plainWall{fails: busy, told: told}, slog.New(slog.DiscardHandler))
		ended <- err
	}()

	<-told
	cancel()

	err = <-ended
	require.Error(t, err)
	require.NotContains(t, err.Error(), "run the worker as root")

	invalid := &plainWall{fails: berth.Errorf(berth.KindInvalid, "not root")}
	_, err = m.guardMetadata(t.Context(), invalid, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "run the worker as root")
	require.Equal(t, 1, invalid.closed, "waiting would not mend it")
}

// plainNetworks are those of a Docker, by name.
type plainNetworks map[string]docker.Network

func (n plainNetworks) Network(_ context.Context, name string) (docker.Network, error) {
	switch found, ok := n[name]; {
	case !ok:
		return docker.Network{}, berth.Errorf(berth.KindNotFound, "no network %q", name)
	case found.Bridge == "":
		return docker.Network{}, berth.Errorf(berth.KindInvalid, "%q is of the driver macvlan", name)
	default:
		return found, nil
	}
}

func (n plainNetworks) EnsureTrialNetwork(ctx context.Context) (docker.Network, error) {
	return n.Network(ctx, docker.TrialNetwork)
}

// What is said to be possible takes the network of trials as it is.
func TestDockerWall_Possible(t *testing.T) {
	tools := t.TempDir()
	for tool, script := range map[string]string{"iptables": "exit 0", "ip6tables": "echo no IPv6 here >&2; exit 3"} {
		require.NoError(t, os.WriteFile(filepath.Join(tools, tool), []byte("#!/bin/sh\n"+script+"\n"), 0o700)) //nolint:gosec // G306: a program
	}

	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))

	here := docker.Network{Bridge: "lo", Gateways: []string{"127.0.0.1"}}
	elsewhere := docker.Network{Bridge: "berth-none"}
	here6 := here
	here6.IPv6 = true

	for name, c := range map[string]struct { //nolint:paralleltest // it sets PATH
		networks plainNetworks
		exists   bool
		says     string
	}{
		"none":                      {plainNetworks{}, false, ""},
		"Docker's":                  {plainNetworks{docker.DefaultNetwork: here}, false, ""},
		"Docker's, with IPv6":       {plainNetworks{docker.DefaultNetwork: here6}, false, ""},
		"Docker's elsewhere":        {plainNetworks{docker.DefaultNetwork: elsewhere}, false, "not in the worker's network namespace"},
		"that of trials":            {plainNetworks{docker.DefaultNetwork: elsewhere, docker.TrialNetwork: here}, true, ""},
		"that of trials elsewhere":  {plainNetworks{docker.DefaultNetwork: here, docker.TrialNetwork: elsewhere}, true, "not in the worker's network namespace"},
		"that of trials, with IPv6": {plainNetworks{docker.DefaultNetwork: here, docker.TrialNetwork: here6}, true, "no IPv6 here"},
		"that of trials, no bridge": {plainNetworks{docker.DefaultNetwork: here, docker.TrialNetwork: {}}, true, "macvlan"},
	} {
		t.Run(name, func(t *testing.T) {
			exists, err := dockerWall{c.networks, firewall.New()}.possible(t.Context())
			require.Equal(t, c.exists, exists)

			if c.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.says)
			}
		})
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
	require.Contains(t, f.What, "unless a rule of yours blocks it")
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
		"http://ada:secret@10.0.0.1:3128": "no name and password", "http://ada:secret@127.0.0.1:3128": "no name and password",
		"http://127.0.0.1:3128": "on loopback", "http://127.0.1.1:3128": "on loopback", "http://LocalHost:3128": "on loopback", "http://[::1]:3128": "on loopback",
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
