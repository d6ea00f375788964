package gpu

import (
	"context"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/berthml/berth"
)

// freshFor is how long a reading holds, for all attempts of a card. With 24 processes on the
// GPU one takes about 2 ms, so readings take at most 0.7 % of a core, and less than 1 % with
// the activity (one H200, 2026-11-25). Frameworks do not give memory back, so this misses no
// peak.
const freshFor = 300 * time.Millisecond

// activityFor is how long an activity of a card holds. Each measurement costs the
// driver about as much as ten readings of memory, and a mean needs no more.
const activityFor = time.Second

// Meter measures the use of GPUs by containers. It is safe for concurrent use.
type Meter struct {
	driver Driver
	proc   fs.FS // the machine's /proc

	mu    sync.Mutex
	cards map[string]*cardMeter // by UUID
}

// cardMeter reads one card, one question at a time.
type cardMeter struct {
	mu         sync.Mutex
	reading    Reading
	err        error
	at         time.Time      // of the last question
	containers map[int]string // of the reading's processes by PID; empty = in none
	servers    map[int]bool   // PIDs of NVIDIA's MPS servers, which are in no reading

	activity    Activity
	activityErr error
	activityAt  time.Time // of the last question
}

// NewMeter returns a meter of a driver's cards.
func NewMeter(driver Driver, proc fs.FS) *Meter {
	return &Meter{driver: driver, proc: proc, cards: make(map[string]*cardMeter)}
}

// ContainerOf returns the container of a process of this machine, as ContainerOf does.
func (m *Meter) ContainerOf(pid int) (containerID string, ok bool) { return ContainerOf(m.proc, pid) }

// Use is a container's use of a GPU, and the GPU's free memory.
type Use struct {
	At        time.Time // of the reading, which several questions may share
	Bytes     int64
	FreeBytes int64
	PIDs      []int // of the container's processes on the GPU
	Clients   int   // processes that share it by MPS

	// Beside are the containers whose processes are on the card, too, each once; an
	// empty one stands for processes that are in none. MPS servers do not count: they
	// compute nothing themselves.
	Beside []string
}

// Container returns the use of a GPU by a container's processes. Errors: as of Driver;
// ErrUnsupported, with the known part, when the driver does not report each process's
// memory.
func (m *Meter) Container(ctx context.Context, containerID, uuid string) (Use, error) {
	r, containers, at, err := m.cachedReading(ctx, uuid)
	if err != nil {
		return Use{}, err
	}

	use := Use{FreeBytes: r.FreeBytes, At: at}
	unnamed := !r.ProcessesKnown

	if unnamed {
		r.Processes = nil // a part of them proves nothing
	}

	for _, p := range r.Processes {
		if id := containers[p.PID]; id != containerID {
			if !slices.Contains(use.Beside, id) {
				use.Beside = append(use.Beside, id)
			}

			continue
		}

		unnamed = unnamed || p.Bytes == 0
		use.PIDs = append(use.PIDs, p.PID)
		use.Bytes += p.Bytes

		if p.MPS {
			use.Clients++
		}
	}

	if unnamed {
		return use, berth.Errorf(berth.KindInvalid, "GPU %s: the driver does not say what each process holds: %w", uuid, ErrUnsupported)
	}

	return use, nil
}

// FreeBeside returns a GPU's memory less the use of programs outside Berth: the
// free memory, plus the use of our containers, each up to its reservation
// (reserved: bytes by id). Memory that one holds beyond that is not available to
// others. Where the driver does not report each process's memory, it is the free
// memory.
func (m *Meter) FreeBeside(ctx context.Context, uuid string, reserved map[string]int64) (int64, error) {
	r, containers, _, err := m.cachedReading(ctx, uuid)
	if err != nil {
		return 0, err
	}

	free, unknown := r.FreeBytes, r.UsedBytes
	held, starts := make(map[string]int64), make(map[string]bool)

	for _, p := range r.Processes {
		held[containers[p.PID]] += p.Bytes
		unknown -= p.Bytes

		if p.Bytes == 0 {
			starts[containers[p.PID]] = true
		}
	}

	for id, bytes := range held {
		free += min(bytes, reserved[id])
	}

	return free + unnamedBytes(starts, held, reserved, unknown), nil
}

// Activity returns how busy a GPU was in about the last second. Errors: as of
// Driver.
func (m *Meter) Activity(ctx context.Context, uuid string) (Activity, error) {
	card := m.card(uuid)

	card.mu.Lock()
	defer card.mu.Unlock()

	if time.Since(card.activityAt) > activityFor {
		activity, err := m.driver.Activity(ctx, uuid)
		if ctx.Err() != nil {
			return Activity{}, ctx.Err() // not the GPU's failure
		}

		card.activity, card.activityErr, card.activityAt = activity, err, time.Now()
	}

	return card.activity, card.activityErr
}

// cachedReading returns a reading of a GPU with the containers of its processes, and its time.
func (m *Meter) cachedReading(ctx context.Context, uuid string) (Reading, map[int]string, time.Time, error) {
	card := m.card(uuid)

	card.mu.Lock()
	defer card.mu.Unlock()

	if time.Since(card.at) > freshFor {
		reading, err := m.driver.Read(ctx, uuid)
		if ctx.Err() != nil {
			return Reading{}, nil, time.Time{}, ctx.Err() // not the GPU's failure
		}

		card.reading, card.err, card.at = reading, err, time.Now()
		card.follow(m.proc)
	}

	return card.reading, card.containers, card.at, card.err
}

// unnamedBytes is the memory of our containers in starting processes, which the driver does not
// report yet: at most the memory that no process accounts for, and at most their
// reservations. 0 where such a process may be another program's.
func unnamedBytes(starts map[string]bool, held, reserved map[string]int64, unknown int64) (bytes int64) {
	for id := range starts {
		if _, ours := reserved[id]; !ours {
			return 0
		}

		bytes += max(reserved[id]-held[id], 0)
	}

	return min(bytes, max(unknown, 0))
}

func (m *Meter) card(uuid string) *cardMeter {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.cards[uuid] == nil {
		m.cards[uuid] = &cardMeter{}
	}

	return m.cards[uuid]
}

// follow looks up the containers of processes that are new, and leaves MPS servers
// out. A PID that was not in the last reading may be another process.
func (c *cardMeter) follow(proc fs.FS) {
	known, servers := c.containers, c.servers
	c.containers, c.servers = make(map[int]string, len(c.reading.Processes)), make(map[int]bool)

	var processes []Process

	for _, p := range c.reading.Processes {
		id, ok := known[p.PID]
		if servers[p.PID] || !ok && isMPSServer(proc, p.PID) {
			c.servers[p.PID] = true

			continue
		}

		if !ok {
			id, _ = ContainerOf(proc, p.PID)
		}

		c.containers[p.PID] = id
		processes = append(processes, p)
	}

	c.reading.Processes = processes
}
