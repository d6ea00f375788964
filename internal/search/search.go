package search

import (
	"math"
	"math/rand/v2"

	"github.com/berthml/berth"
)

// maxWalk bounds the spaces that are enumerated, in points before conditions
// and forbid apply. A sweep has at most 100,000 trials.
const maxWalk = 1 << 18

// Searcher suggests assignments for one sweep. It is immutable and safe for
// concurrent use.
type Searcher struct {
	spec     berth.Spec
	space    *space
	listed   int                // number of enqueued assignments
	from     int                // number of these before enqueue
	tpe, gp  model              // nil = the search does not learn
	corners  map[int]corner     // by searched parameter
	cornered int                // trials that begin at corners
	enqueue  []berth.Assignment // complete, without duplicates and forbidden ones
	enqueued map[string]bool    // their keys
	excluded []int64            // grid: the enqueued points, ascending
}

// New prepares a search over a valid spec. It fails on one that spec.Decode
// would have refused.
func New(s berth.Spec) (*Searcher, error) {
	sp, err := newSpace(s)
	if err != nil {
		return nil, err
	}

	searcher := &Searcher{spec: s, space: sp}
	if s.Search.Learns() {
		searcher.tpe, searcher.gp = newTPE(sp, searcher.several()), &gp{sp}
		searcher.corners, searcher.cornered = cornersFor(sp)
	}

	if s.Search.Algorithm == berth.SearchGrid && (!sp.finite || sp.points > maxWalk) {
		return nil, berth.Errorf(berth.KindInvalid, "a grid must have at most %d points", maxWalk)
	}

	return searcher, searcher.prepareEnqueue()
}

// model suggests from earlier trials. A suggestion is a pure function of these and of random.
type model interface {
	suggest(p *past, random *rand.Rand) berth.Assignment
}

// Needs says what Next looks at. A grid leaves out its enqueued points; a random search
// finds them among its earlier trials.
func (s *Searcher) Needs() berth.SearchNeeds {
	return berth.SearchNeeds{Entries: s.spec.Search.Algorithm == berth.SearchGrid, Past: s.spec.Search.Learns()}
}

// Suggestion is the assignment of one trial, and where it comes from.
type Suggestion struct {
	Values berth.Assignment
	Origin berth.Origin
}

// End says why a search suggests nothing more.
type End int

// The ends of a search.
const (
	EndNone  End = iota // it goes on
	EndLimit            // limits.max_trials is reached
	EndSpace            // the space holds no other assignment that may be tried
	EndDraws            // chance found no other one in DrawsInAll draws
)

// String is the end as a reason for the user.
func (e End) String() string {
	switch e {
	case EndLimit:
		return "limits.max_trials is reached"
	case EndSpace:
		return "every combination was tried"
	case EndDraws:
		return "no further combination was found in 100,000 draws; forbid leaves too few"
	default:
		return ""
	}
}

// Next suggests the assignments of the next trials, at most limit: first the
// enqueued ones, then the algorithm's. end says why none follow. While it is
// EndNone there is at least one suggestion, and fewer than limit only where forbid
// leaves so few that one call cannot find more. Errors: as of tried.Seen; internal
// when the last trial is no point of its grid.
func (s *Searcher) Next(tried berth.Tried, limit int) (suggestions []Suggestion, end End, err error) {
	made := tried.Made

	if most := s.spec.Limits.MaxTrials; most > 0 && limit >= most-made {
		limit, end = most-made, EndLimit
	}

	for limit > len(suggestions) && made+len(suggestions)-s.from < len(s.enqueue) {
		suggestions = append(suggestions, Suggestion{s.enqueue[made+len(suggestions)-s.from], berth.Origin{By: "enqueue"}})
	}

	limit -= len(suggestions)
	made += len(suggestions)

	if limit <= 0 || made < s.listed {
		return suggestions, end, nil
	}

	var more []Suggestion

	stop := EndSpace
	tried.Made = made

	switch s.spec.Search.Algorithm {
	case berth.SearchGrid:
		more, err = s.nextGrid(tried, limit)
	case berth.SearchList:
	default:
		more, stop, err = s.nextDrawn(tried, limit)
	}

	if len(more) < limit {
		end = stop
	}

	return append(suggestions, more...), end, err
}

// Size counts the distinct assignments that a sweep can try, with the enqueued
// ones outside the space. It counts forbid and conditions when the space has at
// most 262,144 points; otherwise n is an upper bound, at most math.MaxInt64.
// finite is false when random search never runs out. It ignores
// limits.max_trials. A spec that New refuses has size 0.
func Size(s berth.Spec) (n int64, finite bool) {
	searcher, err := New(s)
	if err != nil {
		return 0, true
	}

	sp := searcher.space
	beside := int64(len(searcher.enqueue))

	switch {
	case s.Search.Algorithm == berth.SearchList:
		return beside, true
	case !sp.finite:
		return 0, false
	case sp.points > maxWalk:
		return min(sp.points, math.MaxInt64-beside) + beside, true
	}

	on := int64(len(searcher.excluded))
	if sp.plain() {
		return sp.points + beside - on, true
	}

	sp.walk(0, func(int64, berth.Assignment) bool {
		n++

		return true
	})

	return n + beside - on, true
}
