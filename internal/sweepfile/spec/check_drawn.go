package spec

import (
	"errors"
	"strconv"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search"
	"github.com/berthml/berth/internal/sweepfile/argv"
)

const (
	// maxSample is how many assignments of a space are checked before a sweep
	// is accepted: 10 ms of work. The search itself leaves out invalid ones
	// beyond these.
	maxSample = 2_000
	// maxEnqueueDrawn is how many enqueued assignments are completed, for the
	// same reason.
	maxEnqueueDrawn = 1_000
)

// checkDrawn looks at assignments as the search completes them: derived values
// are only known then.
func (c *checker) checkDrawn() {
	for _, section := range []string{"/parameters", "/forbid", "/command", "/stages", "/search", "/limits/max_trials"} {
		if !c.reader.clean(section) {
			return
		}
	}

	s := c.spec
	s.Enqueue = nil // it may have its own problems

	searcher, err := search.New(s)
	if err != nil {
		c.add("/parameters", codeParam, "the search cannot begin: %v", err)

		return
	}

	for i, given := range c.spec.Enqueue[:min(len(c.spec.Enqueue), maxEnqueueDrawn)] {
		if at := "/enqueue/" + strconv.Itoa(i); !c.reader.full() && c.reader.clean(at) {
			if _, err := searcher.Complete(given); err != nil {
				c.add(at, codeEnqueue, "this assignment cannot be tried: %v", err)
			}
		}
	}

	if s.Search.Algorithm != berth.SearchList {
		c.checkSample(searcher)
	}
}

// checkSample refuses a space in which a value was found that the command
// cannot take, and one in which nothing may be tried.
func (c *checker) checkSample(searcher *search.Searcher) {
	var (
		reason  error // why the last one may not be tried
		tried   bool
		problem *argv.Error
		with    berth.Assignment
		sure    = argv.Sure(c.spec)
	)

	all := searcher.Sample(maxSample, func(a berth.Assignment, err error) bool {
		tried = tried || err == nil
		reason, with = err, a

		return !errors.As(err, &problem) && (!sure || !tried) // else there is nothing more to find
	})

	at := "/command"
	if problem != nil && problem.Stage != "" && len(c.spec.Stages[c.spec.StageIndex(problem.Stage)].Command) > 0 {
		at = "/stages/" + strconv.Itoa(c.spec.StageIndex(problem.Stage)) + at
	}

	switch {
	case problem != nil && problem.Element >= 0:
		c.add(at+"/"+strconv.Itoa(problem.Element), codeArgDash, "with %s, %s, or keep the value at 0 or above, such as with max(0, …)",
			shorten(with.Text(", ")), problem.Reason)
	case problem != nil:
		c.add(at, codeCmdSize, "%v", problem)
	case all && !tried:
		c.add("/parameters", codeSpaceEmpty, "there is no combination that may be tried; of the last one: %v", reason)
	}
}
