package apitest

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/berthml/berth"
)

// PageSweeps is api.Sweeps.
func (s *Store) PageSweeps(_ context.Context, q berth.SweepQuery) (berth.Page[berth.Sweep], error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	list := slices.DeleteFunc(slices.Clone(s.Sweeps), func(sweep berth.Sweep) bool {
		return !wanted(q.States, sweep.State) || q.CreatedBy != "" && sweep.CreatedBy != q.CreatedBy ||
			!strings.Contains(strings.ToLower(sweep.Name), strings.ToLower(q.Name))
	})

	slices.SortFunc(list, func(a, b berth.Sweep) int {
		made := cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))

		switch q.Sort.By {
		case berth.SortName:
			return directed(q.Sort, cmp.Or(strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), strings.Compare(a.ID, b.ID)))
		case berth.SortFinishedAt:
			if a.FinishedAt == nil || b.FinishedAt == nil {
				return cmp.Or(keyless(a.FinishedAt == nil, b.FinishedAt == nil), -made)
			}

			return directed(q.Sort, cmp.Or(a.FinishedAt.Compare(*b.FinishedAt), strings.Compare(a.ID, b.ID)))
		default:
			return directed(q.Sort, made)
		}
	})

	return pageOf(list, q.After, q.Limit, func(sweep berth.Sweep) string { return sweep.ID }), nil
}

func directed(s berth.Sort, order int) int {
	if s.Descending {
		return -order
	}

	return order
}

// keyless puts rows without a key behind those that have one.
func keyless(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// pageOf takes a page of a sorted list. Its positions are ids of rows.
func pageOf[T any](list []T, after *berth.Position, limit int, id func(T) string) berth.Page[T] {
	rest := list
	if after != nil {
		rest = list[slices.IndexFunc(list, func(row T) bool { return id(row) == after.Tie })+1:]
	}

	page := berth.Page[T]{Rows: rest[:min(len(rest), limit)], Total: len(list)}
	if len(page.Rows) == limit {
		page.Next = &berth.Position{Tie: id(page.Rows[limit-1])}
	}

	return page
}
