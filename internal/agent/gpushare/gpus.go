package gpushare

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/docker"
	"github.com/berthml/berth/internal/agent/gpu"
	"github.com/berthml/berth/internal/agent/sampling"
)

const (
	// gpuHeadroomShare and leastGPUHeadroom are the headroom of a GPU without
	// capped clients: contexts grow as kernels are loaded, and a job may exceed
	// its measured need.
	gpuHeadroomShare = 0.05
	leastGPUHeadroom = 1 << 30

	// maxContexts bounds the processes on a GPU that is shared by time slices,
	// where only memory does: a context takes about 520 MiB (one H200, 2026-11-21).
	maxContexts = 256

	// readGPUFor bounds one reading for the ledger.
	readGPUFor = 2 * time.Second

	// All is the value of Config.GPUs that hands out all of them.
	All = "all"
	// None is the one that hands out none.
	None = "none"
)

var errNoGPUs = errors.New("this worker has no GPUs; look at what it said when it started")

// GPUs are the GPUs that a worker hands out.
type GPUs struct {
	driver  gpu.Driver
	meter   *gpu.Meter
	devices []berth.Device
	parents map[string]string // by UUID: Card.Parent
	sharer  *sharer           // nil = no GPU is shared by MPS
	log     *slog.Logger

	news chan struct{} // has an element while a GPU's problem has changed and was not reported

	mu   sync.Mutex
	sick map[string]string // by UUID: why, for as long as the worker runs
}

// newGPUs returns the GPUs of a driver, none of them handed out yet; nil = there is none.
func newGPUs(driver gpu.Driver, log *slog.Logger) *GPUs {
	g := &GPUs{driver: driver, log: log, parents: map[string]string{}, news: make(chan struct{}, 1), sick: map[string]string{}}
	if driver != nil {
		g.meter = gpu.NewMeter(driver, os.DirFS("/proc"))
	}

	return g
}

// requestReport requests a report of the GPUs' free memory to the ledger.
func (g *GPUs) requestReport() {
	select {
	case g.news <- struct{}{}:
	default: // it was asked for
	}
}

// Config says which GPUs a worker hands out, and how trials share them.
type Config struct {
	GPUs      string // All, None, or some by UUID or number, with commas between; empty = the default
	Fake      string // simulated ones in their place, such as 2x24GiB; empty = none
	Sharing   string // SharingAuto, time_slicing or exclusive; empty = SharingAuto
	MachineID string // of a worker that has a share of its machine; empty = it has the whole
	DataDir   string // for the sockets of MPS and of simulated GPUs
	Simulate  bool   // no container runs
}

// Bind adds the flags of GPUs.
func Bind(flags *pflag.FlagSet, c *Config) {
	flags.StringVar(&c.GPUs, "gpus", "", "GPUs to hand out: all, none, or some by UUID or number, with commas between; default: all, and none with --machine-id")
	flags.StringVar(&c.Fake, "fake-gpus", "",
		"simulated GPUs in place of real ones, to try Berth without a card, such as 2x24GiB,1x80GiB; only programs made for them see them (docs/gpus.md)")
	flags.StringVar(&c.Sharing, "gpu-sharing", SharingAuto,
		"how trials share a GPU: auto = by NVIDIA's MPS where the machine has it, time_slicing, or exclusive = one at a time")
}

// wanted returns the configured GPUs, or else all of the machine's. A share
// of a machine has only configured ones: the GPUs may be another share's.
func (c Config) wanted() string {
	switch {
	case c.Fake != "":
		return All // they are this worker's own
	case c.GPUs != "":
		return c.GPUs
	case c.MachineID != "":
		return None
	default:
		return All
	}
}

// Open finds the GPUs of this machine that the worker hands out, and starts
// the daemons by which trials share them. hostID is the worker's. Without a driver
// there are none. It logs an unusable driver, because the machine's cores still
// work. Errors: invalid when a flag names an unknown GPU.
func Open(ctx context.Context, c Config, hostID string, d *docker.Docker, log *slog.Logger) (*GPUs, error) {
	none, wanted := newGPUs(nil, log), c.wanted()

	mode, byMPS, err := sharingOf(c.Sharing)
	if err != nil {
		return none, err
	}

	if wanted == None {
		return none, nil
	}

	from, err := c.openSource(ctx, hostID, d, log)
	if err != nil {
		return none, c.withoutGPUs(wanted, err, log)
	}

	driver := from.driver

	inventory, err := driver.Inventory(ctx)
	if err != nil {
		if err := driver.Close(); err != nil {
			log.Warn("closing the driver of GPUs", "error", err)
		}

		return none, c.withoutGPUs(wanted, err, log)
	}

	for _, warning := range inventory.Warnings {
		log.Warn(warning)
	}

	chosen, err := Choose(wanted, inventory.Cards)
	if err != nil {
		return none, errors.Join(err, driver.Close())
	}

	missing, err := from.give(ctx, chosen)
	if err != nil {
		return none, errors.Join(err, driver.Close())
	}

	g := newGPUs(driver, log)
	g.sick = missing

	for _, card := range chosen {
		if card.Problem != "" {
			g.sick[card.UUID] = card.Problem
		}

		g.add(card, mode)
		log.Info("hands out a GPU", "device", card.UUID, "model", card.Model, "profile", card.Profile, "problem", g.sick[card.UUID])
	}

	for i, free := range g.FreeMemory(ctx, nil) {
		g.devices[i].FreeBytes, g.devices[i].Problem = free.FreeBytes, free.Problem
	}

	if byMPS && len(g.devices) > 0 {
		g.share(ctx, from, chosen, contextsOf(inventory.CUDAVersion))
	}

	return g, nil
}

// add hands out a card.
func (g *GPUs) add(card gpu.Card, mode berth.SharingMode) {
	g.devices = append(g.devices, describeGPU(card, mode))
	g.parents[card.UUID] = card.Parent
}

// withoutGPUs decides whether a worker that cannot use GPUs starts: not when a
// person has named them.
func (c Config) withoutGPUs(wanted string, err error, log *slog.Logger) error {
	switch {
	case c.Fake != "":
		return berth.Errorf(berth.KindInvalid, "--fake-gpus %q: %w", c.Fake, err)
	case wanted != All:
		return berth.Errorf(berth.KindInvalid, "--gpus %q: %w", wanted, err)
	case errors.Is(err, gpu.ErrNoDriver):
		log.Debug("no GPUs", "reason", err)
	default:
		log.Warn("this machine's GPUs cannot be used; trials run on its cores", "error", err)
	}

	return nil
}

// Choose picks the cards that wanted names, by UUID or by the driver's number.
func Choose(wanted string, cards []gpu.Card) ([]gpu.Card, error) {
	var all []gpu.Card

	for _, c := range cards {
		if !c.MIG { // else its MIG devices take the work
			all = append(all, c)
		}
	}

	if wanted == All {
		return all, nil
	}

	var chosen []gpu.Card

	for name := range strings.SplitSeq(wanted, ",") {
		name = strings.TrimSpace(name)

		i := slices.IndexFunc(all, func(g gpu.Card) bool { return g.UUID == name || g.Index == name })
		if i < 0 {
			names := make([]string, len(all))
			for i, g := range all {
				names[i] = g.Index + " (" + g.UUID + ")"
			}

			return nil, berth.Errorf(berth.KindInvalid, "--gpus names %q, and this machine has %s; write all, none, or some of these with commas between",
				name, strings.Join(names, ", "))
		}

		if !slices.Contains(chosen, all[i]) {
			chosen = append(chosen, all[i])
		}
	}

	return chosen, nil
}

func describeGPU(card gpu.Card, mode berth.SharingMode) berth.Device {
	most := 0
	if mode == berth.SharingExclusive { // also with MPS clients, which keep their mode
		most = 1
	}

	return berth.Device{
		ID: card.UUID, Model: card.Model, Profile: card.Profile, Mode: mode, MaxContexts: maxContexts, MaxAttempts: most,
		MemoryBytes:   card.MemoryBytes,
		HeadroomBytes: min(max(int64(float64(card.MemoryBytes)*gpuHeadroomShare), leastGPUHeadroom), card.MemoryBytes),
	}
}

// FreeMemory is each GPU's free memory, or why it gives nothing.
func (g *GPUs) FreeMemory(ctx context.Context, running []berth.Container) []berth.DeviceFree {
	reserved := make(map[string]int64, len(running))
	for _, c := range running {
		reserved[c.ID] = c.DeviceBytes
	}

	all := make([]berth.DeviceFree, len(g.devices))

	for i, device := range g.devices {
		all[i] = g.freeOf(ctx, device.ID, reserved)
	}

	return all
}

func (g *GPUs) freeOf(ctx context.Context, id string, reserved map[string]int64) berth.DeviceFree {
	ctx, cancel := context.WithTimeout(ctx, readGPUFor)
	defer cancel()

	bytes, err := g.meter.FreeBeside(ctx, id, reserved)
	if err == nil {
		return berth.DeviceFree{ID: id, FreeBytes: bytes, Problem: g.problem(id), MPSProblem: g.sharer.mpsProblem(id)}
	}

	if errors.Is(err, gpu.ErrLost) { // it does not come back without a person
		g.fail(id, err.Error())
	}

	problem := g.problem(id)
	if problem == "" {
		problem = "its driver does not say what it has free: " + err.Error()
	}

	return berth.DeviceFree{ID: id, Problem: problem, MPSProblem: g.sharer.mpsProblem(id)}
}

func (g *GPUs) problem(id string) string {
	g.mu.Lock()
	sick := g.sick[id]
	g.mu.Unlock()

	return cmp.Or(sick, g.sharer.problem(id))
}

// fail takes a GPU out of service until the worker starts again.
func (g *GPUs) fail(id, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.sick[id] == "" {
		g.sick[id] = why
		g.log.Error("takes a GPU out of service; once it is well, start the worker again", "device", id, "reason", why)
		g.requestReport()
	}
}

// Read reads the GPU of a container.
func (g *GPUs) Read(ctx context.Context, c berth.Container, deviceID string) (sampling.DeviceReading, error) {
	if g.meter == nil { // an attempt of the worker before, which had some
		return sampling.DeviceReading{}, errNoGPUs
	}

	activity := g.activity(ctx, deviceID)
	use, err := g.meter.Container(ctx, c.ID, deviceID)
	lost := errors.Is(err, gpu.ErrLost)

	if lost {
		g.fail(deviceID, err.Error())
	}

	g.mu.Lock()
	defer g.mu.Unlock()

	return sampling.DeviceReading{
		At: use.At, UsedBytes: use.Bytes, FreeBytes: use.FreeBytes, Unshared: use.Clients < len(use.PIDs), Unnamed: errors.Is(err, gpu.ErrUnsupported),
		Activity: activity, Beside: use.Beside, Problem: g.sick[deviceID], Lost: lost,
	}, err
}

// activity is how busy a GPU was of late; zero when its driver does not say. What
// nvidia-smi calls utilisation does not tell how full a GPU is (gpu.Activity).
func (g *GPUs) activity(ctx context.Context, id string) sampling.GPUActivity {
	a, err := g.meter.Activity(ctx, id)
	if err != nil || a.From.IsZero() {
		return sampling.GPUActivity{}
	}

	return sampling.GPUActivity{At: a.To, SM: a.SMActivity, DRAM: a.DRAMBandwidth, Tensor: a.Tensor}
}

// eventPause keeps a driver that refuses to wait for events from being asked at once again.
const eventPause = 5 * time.Second

// Devices are the GPUs as the ledger has them.
func (g *GPUs) Devices() []berth.Device { return g.devices }

// News has an element while a GPU's problem has changed and FreeMemory has not said so.
func (g *GPUs) News() <-chan struct{} { return g.news }

// Watch takes GPUs out of service that report a fault of their own, and starts MPS daemons
// again that have ended, until ctx ends.
func (g *GPUs) Watch(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return g.watchEvents(ctx) })

	if g.sharer != nil {
		group.Go(func() error { return g.sharer.watch(ctx) })
	}

	return group.Wait()
}

// watchEvents waits for faults that GPUs report.
func (g *GPUs) watchEvents(ctx context.Context) error {
	if g.driver == nil {
		<-ctx.Done()

		return ctx.Err()
	}

	for {
		event, err := g.driver.WaitEvent(ctx)

		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, gpu.ErrUnsupported):
			g.log.Warn("the driver tells of no errors of GPUs: a sick one is noticed by the trials that fail on it", "error", err)
			<-ctx.Done()

			return ctx.Err()
		case err != nil:
			g.log.Warn("waiting for errors of GPUs; trying again", "error", err)

			select {
			case <-time.After(eventPause):
			case <-ctx.Done():
				return ctx.Err()
			}
		default:
			g.noteEvent(event)
		}
	}
}

// noteEvent handles a GPU's event. A fault of a GPU in MIG mode is a fault of each of
// its MIG devices.
func (g *GPUs) noteEvent(event gpu.Event) {
	diagnosis := event.Diagnose()
	g.log.Warn("a GPU reports an error", "device", event.UUID, "xid", event.XID, "meaning", diagnosis.Meaning)

	if !diagnosis.Sick {
		return
	}

	for _, device := range g.devices {
		if event.UUID == "" || event.UUID == device.ID || event.UUID == g.parents[device.ID] {
			g.fail(device.ID, diagnosis.Meaning)
		}
	}
}

// Close gives the driver back. used = containers that may need a GPU go on.
func (g *GPUs) Close(ctx context.Context, used bool) {
	if g.driver == nil {
		return
	}

	if g.sharer != nil {
		g.sharer.close(ctx, used)
	}

	if err := g.driver.Close(); err != nil {
		g.log.Warn("closing the driver of GPUs", "error", err)
	}
}
