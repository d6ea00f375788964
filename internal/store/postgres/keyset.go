package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// keyset is a sorted list of ids that is read page by page, each from the end
// of the one before, so that the last page costs as much as the first. sqlc has
// no variable ORDER BY, and one statement for all would use no index; so this
// package builds only this statement as text. Its texts are constants of this
// package, and values of callers are arguments.
type keyset struct {
	table    string
	filters  []string
	args     []any
	sections []section
	most     int // that count counts
}

// section is the rows with one kind of key. Rows without the list's sort key are
// the last section, with its own order.
type section struct {
	where string // beside the filters; empty = all
	key   expr   // zero = the tie alone
	tie   expr   // unique in the list
}

// expr is a key in SQL, with its type.
type expr struct {
	text, kind string
	desc       bool
}

// filter adds a condition with one argument, which it names by %[1]s.
func (k *keyset) filter(condition string, arg any) {
	k.filters = append(k.filters, fmt.Sprintf(condition, k.arg(arg)))
}

func (k *keyset) arg(v any) string {
	k.args = append(k.args, v)

	return fmt.Sprintf("$%d", len(k.args))
}

// page returns at most limit ids behind a position, and the end of the page; nil =
// it is the last. Errors: invalid for a position outside the list.
func (k *keyset) page(ctx context.Context, db dbsqlc.DBTX, after *berth.Position, limit int) (ids []string, next *berth.Position, err error) {
	at := 0
	if after != nil {
		at = after.Section
	}

	if at < 0 || at >= len(k.sections) {
		return nil, nil, errPosition
	}

	for i := at; i < len(k.sections) && len(ids) < limit; i++ {
		from := after
		if i > at {
			from = nil
		}

		rows, last, err := k.read(ctx, db, i, from, limit-len(ids))
		if err != nil {
			return nil, nil, err
		}

		if ids = append(ids, rows...); last != nil {
			next = last
		}
	}

	if len(ids) < limit {
		next = nil
	}

	return ids, next, nil
}

var errPosition = berth.Errorf(berth.KindInvalid, "the cursor is none of this list; send next_cursor of the page before, or no cursor to begin anew")

// read reads one section.
func (k *keyset) read(ctx context.Context, db dbsqlc.DBTX, i int, after *berth.Position, limit int) (ids []string, last *berth.Position, err error) {
	p := k.sections[i]
	of := keyset{table: k.table, filters: slices.Clone(k.filters), args: slices.Clone(k.args)}

	if p.where != "" {
		of.filters = append(of.filters, p.where)
	}

	if after != nil {
		of.filters = append(of.filters, of.conditionBehind(p, *after))
	}

	order, key := p.tie.order(), "''"
	if p.key.text != "" {
		order, key = p.key.order()+", "+order, "("+p.key.text+")::text"
	}

	rows, err := db.Query(ctx, fmt.Sprintf("SELECT id, %s AS sort_key, (%s)::text AS sort_tie%s ORDER BY %s LIMIT %d", key, p.tie.text, of.from(), order, limit), of.args...)
	if err != nil {
		return nil, nil, ofPosition(after, err)
	}

	at := berth.Position{Section: i}

	var id string

	_, err = pgx.ForEachRow(rows, []any{&id, &at.Key, &at.Tie}, func() error {
		ids = append(ids, id)

		return nil
	})
	if err != nil || len(ids) == 0 {
		return nil, nil, ofPosition(after, err)
	}

	return ids, &at, nil
}

// conditionBehind is the condition for rows after a position. An index can begin at its
// first half.
func (k *keyset) conditionBehind(p section, at berth.Position) string {
	tie := k.arg(at.Tie) + "::text::" + p.tie.kind
	beyond := p.tie.text + p.tie.after() + tie

	if p.key.text == "" {
		return beyond
	}

	key := k.arg(at.Key) + "::text::" + p.key.kind

	return fmt.Sprintf("%[1]s %[2]s= %[3]s AND (%[1]s %[2]s %[3]s OR %[4]s)", p.key.text, strings.TrimSpace(p.key.after()), key, beyond)
}

func (e expr) order() string {
	if e.desc {
		return e.text + " DESC"
	}

	return e.text
}

func (e expr) after() string {
	if e.desc {
		return " < "
	}

	return " > "
}

func (k *keyset) from() string {
	return " FROM " + k.table + " WHERE " + strings.Join(k.filters, " AND ")
}

// count is how many ids the list has, at most k.most.
func (k *keyset) count(ctx context.Context, db dbsqlc.DBTX) (n int, err error) {
	err = db.QueryRow(ctx, fmt.Sprintf("SELECT count(*) FROM (SELECT 1%s LIMIT %d) AS counted", k.from(), k.most), k.args...).Scan(&n)

	return n, err
}

// ofPosition separates a position made up by a caller from other errors: class
// 22, data exception, is PostgreSQL's error for a text that is no value of its
// type.
func ofPosition(after *berth.Position, err error) error {
	if after == nil {
		return err
	}

	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && strings.HasPrefix(pg.Code, "22") {
		return errPosition
	}

	return err
}

// inOrder sorts rows by ids. It leaves out rows deleted in between.
func inOrder[T any](ids []string, rows []T, id func(T) string) []T {
	byID := make(map[string]T, len(rows))
	for _, row := range rows {
		byID[id(row)] = row
	}

	out := make([]T, 0, len(ids))

	for _, id := range ids {
		if row, there := byID[id]; there {
			out = append(out, row)
		}
	}

	return out
}
