package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// event is one thing that happens in a storm: when it is due, and all that was
// drawn for it. What it hits may depend on what is there then; Pick chooses
// among that.
type event struct {
	At    time.Duration
	Kind  string
	Host  int           // index of a host
	Lasts time.Duration // of a fault
	Pick  uint64
	Sweep int   // number of a sweep that was ordered before, for what is done to one
	Order order // of a submission
}

func (e event) String() string {
	text := fmt.Sprintf("%7.2f s  %s", e.At.Seconds(), e.Kind)

	switch {
	case e.Kind == submission || e.Kind == "canary":
		return text + fmt.Sprintf(" %+v", e.Order)
	case slices.Contains(steering, e.Kind):
		return text + fmt.Sprintf(" sweep %d, pick %d", e.Sweep, e.Pick%100)
	default:
		return text + fmt.Sprintf(" host-%d for %s, pick %d", e.Host+1, e.Lasts.Round(time.Millisecond), e.Pick%100)
	}
}

const submission = "submit"

// steering are the kinds of event that a person does to a sweep.
var steering = []string{"pause", "resume", "stop", "cancel", "terminate sweep", "terminate trial"}

// kind is one kind of event, how often it is drawn among the others, and how
// long its fault lasts.
type kind struct {
	name     string
	weight   int
	from, to time.Duration
}

// kinds weigh by how often such things happen, and by what they cost: a
// stopped database stops everything.
var kinds = []kind{
	{name: submission, weight: 32},
	{name: "pause", weight: 6},
	{name: "resume", weight: 4},
	{name: "stop", weight: 2},
	{name: "cancel", weight: 3},
	{name: "terminate sweep", weight: 1},
	{name: "terminate trial", weight: 1},
	{name: "kill -9 of worker", weight: 10, to: 4 * time.Second},
	{name: "SIGTERM of worker", weight: 6, to: 4 * time.Second},
	{name: "other binary on worker", weight: 2, from: 2 * time.Second, to: 6 * time.Second},
	{name: "SIGSTOP of worker", weight: 5, from: time.Second, to: 15 * time.Second},
	{name: "cut from PostgreSQL", weight: 4, from: 500 * time.Millisecond, to: 16 * time.Second},
	{name: "cut from Temporal", weight: 4, from: 500 * time.Millisecond, to: 16 * time.Second},
	{name: "cut from both", weight: 3, from: 500 * time.Millisecond, to: 16 * time.Second},
	{name: "cut from Docker", weight: 3, from: 500 * time.Millisecond, to: 5 * time.Second},
	{name: "kill -9 of server", weight: 5, to: 3 * time.Second},
	{name: "crash of PostgreSQL", weight: 3},
	{name: "kill -9 of Temporal", weight: 3, to: 3 * time.Second},
	{name: xidOfCard, weight: 2, from: time.Second, to: 6 * time.Second},
	{name: eccOfCard, weight: 2, from: time.Second, to: 6 * time.Second},
	{name: lossOfCard, weight: 2, from: time.Second, to: 6 * time.Second},
	{name: hangOfCard, weight: 2, from: time.Second, to: 12 * time.Second},
	{name: "docker kill", weight: 3},
	{name: "docker rm --force", weight: 2},
}

// Faults of one card of a host. They last until its worker has been started again, as a
// person does who has reset the card.
const (
	xidOfCard  = "XID of a card"
	eccOfCard  = "lost memory of a card"
	lossOfCard = "loss of a card"
	hangOfCard = "hang of a card's driver"
)

// scene is a story of several steps that chance alone would hardly tell. A
// heavy one hurts for long, so a run has one of them.
type scene struct {
	name  string
	heavy bool
}

var scenes = []scene{
	{name: "paused carrier"},
	{name: "canceled carrier"},
	{name: "gap in a probe"},
	{name: "host lost", heavy: true},
	{name: "host away", heavy: true},
	{name: "sick host", heavy: true},
	{name: restoredDatabase, heavy: true},
	{name: ending, heavy: true},
}

const (
	restoredDatabase = "restored database"
	ending           = "emptied Temporal" // ends a storm, and no calm follows it
)

const (
	chaosHosts   = 3
	canaryEvery  = 4 * time.Second
	groupLasts   = 20 * time.Second // after which shapes are new, so that there is always something to probe
	lightEvery   = 30 * time.Second // a light scene for each
	groupsAtOnce = 4
	eventGapMin  = 200 * time.Millisecond
	eventGapMax  = 1800 * time.Millisecond
)

// plot limits what a schedule draws from; empty = everything.
type plot struct {
	jobs, scenes, kinds []string
}

// handsOfDeck is how many seeds in a row share the order of a deck: as many as
// there are heavy scenes. With what it takes to become quiet, so many runs of a
// minute take less than a quarter of an hour.
const handsOfDeck = 5

// deck deals cards: all of them before any comes again. The seeds 5n to 5n+4
// share an order and begin at different places of it, so that their runs
// together play every card. Draws that do not depend on each other would leave
// some out for long.
type deck[T any] struct {
	cards []T
	next  int
}

func newDeck[T any](seed uint64, cards []T) *deck[T] {
	cards = slices.Clone(cards)
	r := rand.New(rand.NewPCG(seed/handsOfDeck, 0))
	r.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })

	return &deck[T]{cards: cards, next: int(seed%handsOfDeck) * len(cards) / handsOfDeck}
}

func (d *deck[T]) deal() T {
	card := d.cards[d.next%len(d.cards)]
	d.next++

	return card
}

// schedule draws everything that happens in a storm: nothing of it depends on
// how fast the machine is.
func schedule(seed uint64, lasts time.Duration, only plot) []event {
	r := rand.New(rand.NewPCG(seed, seed))
	ordered := newDeck(seed, jobCards(only.jobs))
	n := 0

	var all []event

	add := func(e event) {
		if e.Kind == submission {
			e.Order = drawOrder(r, ordered.deal(), n, int(e.At/groupLasts)*groupsAtOnce+r.IntN(groupsAtOnce))
			n++
		}

		if slices.Contains(steering, e.Kind) {
			e.Sweep = r.IntN(n)
		}

		all = append(all, e)
	}

	for range 3 {
		add(event{Kind: submission})
	}

	for at := time.Duration(0); ; {
		at += between(r, eventGapMin, eventGapMax)
		if at > lasts {
			break
		}

		add(drawEvent(r, at, only.kinds))
	}

	all = append(all, drawScenes(r, seed, lasts, only.scenes)...)

	for at, c := canaryEvery/2, 0; at < lasts; at, c = at+canaryEvery, c+1 {
		all = append(all, event{At: at, Kind: "canary", Order: order{
			Job: "canary", Name: fmt.Sprintf("canary %d", c), Group: c, Probe: "off", Times: []int{100},
		}})
	}

	slices.SortStableFunc(all, func(a, b event) int { return int(a.At - b.At) })

	return all
}

func drawEvent(r *rand.Rand, at time.Duration, only []string) event {
	k := pickWeighted(r, kinds, func(k kind) int {
		if len(only) > 0 && k.name != submission && !slices.Contains(only, k.name) {
			return 0
		}

		return k.weight
	})
	e := event{At: at, Kind: k.name, Host: r.IntN(chaosHosts), Pick: r.Uint64()}

	if k.to > k.from {
		e.Lasts = between(r, k.from, k.to)
	}

	return e
}

// jobCards are the jobs, each as often as it weighs.
func jobCards(only []string) []job {
	var cards []job

	for _, j := range jobs {
		if len(only) == 0 || slices.Contains(only, j.name) {
			cards = append(cards, slices.Repeat([]job{j}, j.weight)...)
		}
	}

	return cards
}

// drawScenes deals one light scene for every 30 s, and a heavy one. With names,
// it is those.
func drawScenes(r *rand.Rand, seed uint64, lasts time.Duration, only []string) []event {
	var light, heavy, chosen []scene

	for _, s := range scenes {
		switch {
		case slices.Contains(only, s.name):
			chosen = append(chosen, s)
		case s.heavy:
			heavy = append(heavy, s)
		default:
			light = append(light, s)
		}
	}

	if len(only) == 0 {
		lights := newDeck(seed, light)
		for range max(1, int(lasts/lightEvery)) {
			chosen = append(chosen, lights.deal())
		}

		chosen = append(chosen, newDeck(seed, heavy).deal())
	}

	events := make([]event, len(chosen))

	for i, s := range chosen {
		at := between(r, lasts/10, lasts*6/10)
		if s.name == ending {
			at = lasts
		}

		events[i] = event{At: at, Kind: s.name, Host: r.IntN(chaosHosts), Lasts: between(r, 12*time.Second, 25*time.Second), Pick: r.Uint64()}
	}

	return events
}

// between draws a time.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// pickWeighted draws one by weight.
func pickWeighted[T any](r *rand.Rand, all []T, weight func(T) int) T {
	total := 0
	for _, one := range all {
		total += weight(one)
	}

	draw := r.IntN(total)

	for _, one := range all {
		if draw -= weight(one); draw < 0 {
			return one
		}
	}

	panic("a draw beyond the sum of the weights")
}

// lines renders a schedule, one event a line.
func lines(all []event) string {
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = e.String()
	}

	return strings.Join(texts, "\n")
}

func TestChaosSchedule_SeedRepeatsIt(t *testing.T) {
	t.Parallel()

	for seed := range uint64(20) {
		first := schedule(seed, time.Minute, plot{})
		require.Equal(t, first, schedule(seed, time.Minute, plot{}))
		require.NotEqual(t, lines(first), lines(schedule(seed+1, time.Minute, plot{})))
	}
}

func TestChaosSchedule_DrawsEveryKind(t *testing.T) {
	t.Parallel()

	const seeds = 200

	drawn, total := map[string]int{}, 0

	for seed := range uint64(seeds) {
		for _, e := range schedule(seed, time.Minute, plot{}) {
			drawn[e.Kind]++

			if slices.ContainsFunc(kinds, func(k kind) bool { return k.name == e.Kind }) {
				total++
			}

			if e.Kind == submission {
				drawn["job "+e.Order.Job]++
			}
		}
	}

	weights := 0
	for _, k := range kinds {
		weights += k.weight
	}

	for _, k := range kinds {
		require.Greater(t, drawn[k.name], total*k.weight/weights/2, "%s is drawn too rarely", k.name)
	}

	cards := len(jobCards(nil))
	for _, j := range jobs {
		require.GreaterOrEqual(t, drawn["job "+j.name], drawn[submission]*j.weight/cards/2, "%s is drawn too rarely", j.name)
	}
}

// Five seeds of a minute, which take less than fifteen, play every scene and submit
// every job. A calm, in which what was done wrong shows, follows every heavy
// scene but the one that ends a storm.
func TestChaosSchedule_FiveSeedsPlayEverything(t *testing.T) {
	t.Parallel()

	for first := uint64(0); first < 200; first += handsOfDeck {
		drawn := map[string]int{}

		for seed := first; seed < first+handsOfDeck; seed++ {
			var heavy []string

			for _, e := range schedule(seed, time.Minute, plot{}) {
				drawn[e.Kind]++
				drawn["job "+e.Order.Job]++

				if slices.ContainsFunc(scenes, func(s scene) bool { return s.name == e.Kind && s.heavy }) {
					heavy = append(heavy, e.Kind)
				}
			}

			require.Len(t, heavy, 1, "seed %d", seed)
		}

		for _, s := range scenes {
			require.Positive(t, drawn[s.name], "seeds %d to %d leave out scene %s", first, first+handsOfDeck-1, s.name)
		}

		for _, j := range jobs {
			require.GreaterOrEqual(t, drawn["job "+j.name], min(1, j.weight), "seeds %d to %d leave out job %s", first, first+handsOfDeck-1, j.name)
		}
	}
}

// A file with a value twice is refused.
func TestChaosSchedule_NoTwoTrialsAreAlike(t *testing.T) {
	t.Parallel()

	for seed := range uint64(100) {
		for _, e := range schedule(seed, time.Minute, plot{}) {
			slices.Sort(e.Order.Times)
			require.Len(t, slices.Compact(slices.Clone(e.Order.Times)), len(e.Order.Times), "%s", e)
		}
	}
}

func TestChaosSchedule_SteersWhatWasOrdered(t *testing.T) {
	t.Parallel()

	for seed := range uint64(50) {
		ordered := 0

		for _, e := range schedule(seed, time.Minute, plot{}) {
			if e.Kind == submission {
				ordered++
			}

			if slices.Contains(steering, e.Kind) {
				require.Less(t, e.Sweep, ordered, "%s", e)
			}
		}
	}
}
