//go:build integration

package e2e

import (
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/berthml/berth/internal/simgpu"
)

// chaosCards are how many GPUs of 8 GiB the hosts have, in their order.
var chaosCards = []int{2, 1, 0}

// cardFaults are the faults of a card by the kind of event.
var cardFaults = map[string]simgpu.Fault{
	xidOfCard:  {XID: 79},
	eccOfCard:  {ECC: true},
	lossOfCard: {Lose: true},
	hangOfCard: {Hang: true},
}

// spoilCard does something to a card of a host. A worker that does not run has none,
// and one that is frozen cannot be told.
func (x *chaos) spoilCard(h *host, e event) {
	cards := chaosCards[slices.Index(x.hosts, h)]
	if cards == 0 || !h.up() {
		return
	}

	number := int(e.Pick % uint64(cards)) //nolint:gosec // G115: of a few cards

	x.begins(cardFault, h.name, time.Now())

	if err := simgpu.Inject(x.cards(h), number, cardFaults[e.Kind]); err != nil {
		x.ends(cardFault, h.name, time.Now())
		x.note("%s of %s is not possible: %v", e.Kind, h.name, err)

		return
	}

	x.fault(e.Kind, h.name, e.Lasts, func() { x.mendCard(h, e, number) })
}

func (x *chaos) cards(h *host) string { return filepath.Join(h.dir, "gpus") }

// mendCard ends the fault of a card as a person does: by starting the host's worker
// again. A driver that hangs answers again by itself.
func (x *chaos) mendCard(h *host, e event, number int) {
	switch {
	case slices.Contains(x.staying(), h.name) && !h.up(): // dead or frozen: once it is back
		x.due = append(x.due, repair{time.Now().Add(time.Second), e.Kind + " of " + h.name + " ends", func() { x.mendCard(h, e, number) }})

		return
	case !h.up(): // lost for good
	case e.Kind == hangOfCard:
		_ = simgpu.Inject(x.cards(h), number, simgpu.Fault{Wake: true}) // a worker that was started again has cards that answer
	default:
		x.takeAway(h)
		stop(h.worker, syscall.SIGTERM)

		h.away = false
		x.startWorker(h, binary)
	}

	x.ends(cardFault, h.name, time.Now())
}
