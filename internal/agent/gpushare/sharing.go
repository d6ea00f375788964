package gpushare

import (
	"cmp"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/docker"
	"github.com/berthml/berth/internal/agent/gpu"
	"github.com/berthml/berth/internal/agent/mps"
)

// How trials may share the worker's GPUs, as --gpu-sharing says it. SharingAuto is by MPS where
// the machine has it.
const (
	SharingAuto        = "auto"
	sharingTimeSlicing = string(berth.SharingTimeSlicing)
	sharingExclusive   = string(berth.SharingExclusive)
)

const (
	// mpsContexts and mpsContextsFrom131 are how many clients a GPU's MPS server
	// takes: 48, and 60 from CUDA 13.1 on (NVIDIA's guide to MPS), less four for
	// processes that a job starts beside its own.
	mpsContexts        = 44
	mpsContextsFrom131 = 56

	// leastMajor is the first compute capability whose clients have address spaces
	// of their own (Volta): before it one client's fault reads another's memory.
	leastMajor = 7

	// checkMPSEvery is how often daemons are checked.
	checkMPSEvery = berth.LeaseRenewEvery
)

// daemons are the MPS daemons of a machine's GPUs.
type daemons interface {
	Start(ctx context.Context, uuid string) error
	Check(ctx context.Context, uuid string) error
	Pipe(uuid string) string
	Clients(ctx context.Context, uuid string) ([]int, error)
	Stop(ctx context.Context, uuid string) error
}

// sharer has the MPS daemons of a worker's GPUs; nil has none.
type sharer struct {
	daemons daemons
	ids     []string // of the GPUs that have one
	proc    func(pid int) (containerID string, ok bool)
	system  fs.FS         // /proc
	drain   time.Duration // for which a frozen client's kernels may go on
	kill    func(pid int) error
	log     *slog.Logger
	tell    func() // reports a daemon that stopped serving, or serves again

	mu     sync.Mutex
	states map[string]daemonState // by UUID
}

// daemonState is the state of a daemon. While one that served is started again, its GPU takes
// nothing; when that fails, trials share it by time slices, and each check tries again.
type daemonState struct {
	why      string // why it serves no client; empty = it serves
	starting bool
}

// WhyNoMPS says why a card's trials cannot share it by MPS; empty = they can.
func WhyNoMPS(card gpu.Card, user int) string {
	switch {
	case card.Parent != "":
		return "it is a MIG device"
	case card.Major > 0 && card.Major < leastMajor:
		return "it is older than NVIDIA's Volta"
	case user != 0:
		return "a worker that is not root cannot start MPS for containers of any user"
	default:
		return ""
	}
}

// OpenMPS finds NVIDIA's MPS for a worker with such a data directory.
func OpenMPS(dataDir string) (*mps.MPS, error) {
	return mps.Open(mps.Config{Dir: filepath.Join(dataDir, "mps")})
}

// contextsOf is how many MPS clients a driver's newest CUDA version takes.
func contextsOf(cuda string) int {
	major, minor, _ := strings.Cut(cuda, ".")

	a, err := strconv.Atoi(major)
	if err != nil {
		return mpsContexts // not known
	}

	b, err := strconv.Atoi(minor)
	if err != nil {
		b = 0 // 13 is 13.0
	}

	if a > 13 || a == 13 && b >= 1 {
		return mpsContextsFrom131
	}

	return mpsContexts
}

// share starts a daemon for each GPU that can have one, and says for the others why
// their trials share by time slices. cards are those of the devices; contexts is how many clients
// each takes.
func (g *GPUs) share(ctx context.Context, from source, cards []gpu.Card, contexts int) {
	daemons, err := from.mps()
	if err != nil {
		g.log.Info("trials share GPUs by time slices", "reason", err)

		return
	}

	g.sharer = &sharer{daemons: daemons, proc: g.meter.ContainerOf, system: os.DirFS("/proc"), drain: from.drain, kill: killProcess, log: g.log, tell: g.requestReport, states: make(map[string]daemonState)}

	for i, card := range cards {
		device := &g.devices[i]
		if device.Problem != "" {
			continue
		}

		if why := WhyNoMPS(card, from.user); why != "" {
			g.log.Info("trials share the GPU by time slices", "device", card.UUID, "reason", why)

			continue
		}

		g.sharer.ids = append(g.sharer.ids, card.UUID)
		g.sharer.open(ctx, card.UUID)

		device.MPSContexts, device.MPSProblem = contexts, g.sharer.mpsProblem(card.UUID)
	}
}

// open starts a daemon for a worker that starts. Without a daemon trials still
// use the GPU.
func (s *sharer) open(ctx context.Context, id string) {
	s.noteStart(id, s.daemons.Start(ctx, id))
}

// Pipe is where the clients of a GPU's daemon find it.
func (g *GPUs) Pipe(id string) (string, error) {
	if !g.sharer.hasDaemon(id) {
		return "", berth.Errorf(berth.KindUnavailable, "GPU %s has no MPS daemon on this host any more; `berth doctor` there says why", id)
	}

	if why := cmp.Or(g.sharer.problem(id), g.sharer.mpsProblem(id)); why != "" {
		return "", berth.Errorf(berth.KindUnavailable, "GPU %s: %s", id, why)
	}

	return g.sharer.daemons.Pipe(id), nil
}

func (s *sharer) hasDaemon(id string) bool { return s != nil && slices.Contains(s.ids, id) }

func (s *sharer) state(id string) daemonState {
	if s == nil {
		return daemonState{}
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	return s.states[id]
}

// problem says why a GPU takes nothing for a moment: its daemon is started again,
// and trials that came now would share it by time slices. Empty = it takes trials.
func (s *sharer) problem(id string) string {
	if state := s.state(id); state.starting {
		return berth.MPSStarts + ": " + state.why
	}

	return ""
}

// mpsProblem says why a GPU takes no clients of MPS, for as long as its daemon cannot
// be started; empty = it takes them.
func (s *sharer) mpsProblem(id string) string {
	if state := s.state(id); state.why != "" && !state.starting {
		return "its MPS daemon does not run: " + state.why
	}

	return ""
}

// watch starts daemons again that have ended, until ctx does.
func (s *sharer) watch(ctx context.Context) error {
	ticker := time.NewTicker(checkMPSEvery)
	defer ticker.Stop()

	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}

		for _, id := range s.ids {
			s.checkDaemon(ctx, id)
		}
	}
}

func (s *sharer) checkDaemon(ctx context.Context, id string) {
	err := s.daemons.Check(ctx, id)
	if err != nil && ctx.Err() == nil {
		if s.state(id).why == "" {
			s.log.Warn("the MPS daemon of a GPU does not answer; starting it again", "device", id, "error", err)
			s.noteState(id, daemonState{why: "it does not answer", starting: true})
		}

		err = s.daemons.Start(ctx, id)
	}

	if ctx.Err() == nil { // else it is not the daemon's failure
		s.noteStart(id, err)
	}
}

// noteStart notes how the start of a daemon ended.
func (s *sharer) noteStart(id string, err error) {
	var state daemonState

	if err != nil {
		state.why = err.Error()
	}

	if s.noteState(id, state) && err != nil {
		s.log.Warn("the MPS daemon of a GPU cannot be started: trials share it by time slices", "device", id, "error", err)
	}
}

// noteState reports whether the state is another one, and then tells the ledger.
func (s *sharer) noteState(id string, state daemonState) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.states[id] == state {
		return false
	}

	s.states[id] = state
	s.tell()

	return true
}

// close ends the daemons, except those in use by a container: the next worker
// goes on with them.
func (s *sharer) close(ctx context.Context, used bool) {
	if used {
		return
	}

	ctx, cancel := context.WithTimeout(ctx, readGPUFor)
	defer cancel()

	for _, id := range s.ids {
		if err := s.daemons.Stop(ctx, id); err != nil {
			s.log.Warn("ending the MPS daemon of a GPU", "device", id, "error", err)
		}
	}
}

// sharingOf reads --gpu-sharing. Errors: invalid.
func sharingOf(wanted string) (mode berth.SharingMode, byMPS bool, err error) {
	switch wanted {
	case "", SharingAuto:
		return berth.SharingTimeSlicing, true, nil
	case sharingTimeSlicing:
		return berth.SharingTimeSlicing, false, nil
	case sharingExclusive:
		return berth.SharingExclusive, false, nil
	default:
		return "", false, berth.Errorf(berth.KindInvalid, "--gpu-sharing %q must be auto, time_slicing or exclusive", wanted)
	}
}

// RunsOnGPU reports whether a container of this host is, or may be, on a GPU.
func RunsOnGPU(ctx context.Context, d *docker.Docker, log *slog.Logger) bool {
	ctx, cancel := context.WithTimeout(ctx, readGPUFor)
	defer cancel()

	list, err := d.List(ctx)
	if err != nil {
		log.Warn("looking for containers that use GPUs", "error", err)

		return true
	}

	return slices.ContainsFunc(list, func(c berth.Container) bool { return c.State == berth.ContainerRunning && c.DeviceID != "" })
}
