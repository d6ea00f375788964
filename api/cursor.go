package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
)

// A cursor is where a page ended, in base64url JSON.

func writeCursor(key any) string {
	data, err := json.Marshal(key)
	if err != nil { // our own keys always marshal
		panic("api: marshaling a cursor: " + err.Error())
	}

	return base64.RawURLEncoding.EncodeToString(data)
}

// readCursor leaves key as it is when the cursor is empty. Errors: invalid.
func readCursor(cursor string, key any) error {
	if cursor == "" {
		return nil
	}

	data, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(data, key)
	}

	if err != nil {
		return berth.Errorf(berth.KindInvalid, "%q is no cursor; send next_cursor of the page before", cursor)
	}

	return nil
}

// pageOf reads a page of rows behind a cursor, and the cursor of the next page:
// key is the position of a row.
func pageOf[Row, Key any](
	s *Server, cursor *openapi.Cursor, limit *openapi.Limit, read func(after Key, limit int) ([]Row, error), key func(Row) Key,
) (rows []Row, next string, err error) {
	var after Key
	if err := readCursor(given(cursor), &after); err != nil {
		return nil, "", err
	}

	most := s.pageSize(given(limit))

	rows, err = read(after, most)
	if err == nil && len(rows) == most {
		next = writeCursor(key(rows[most-1]))
	}

	return rows, next, err
}

// listCursor is where a page of a list with filters and a sort ended. Counting
// may cost more than a page, so the total of the first page goes along.
type listCursor struct {
	List  string         `json:"l"` // which list: listKey
	At    berth.Position `json:"a"`
	Total int            `json:"n"`
}

// listKey stands for a list: its name, filters and sort.
func listKey(list ...any) string {
	data, err := json.Marshal(list)
	if err != nil { // filters are texts and finite numbers
		panic("api: marshaling a list's filters: " + err.Error())
	}

	sum := sha256.Sum256(data)

	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// readListCursor returns where the page before ended; nil = this is the first.
// Errors: invalid, also for the cursor of a list with other filters.
func readListCursor(cursor, key string) (*berth.Position, int, error) {
	if cursor == "" {
		return nil, 0, nil
	}

	var c listCursor
	if err := readCursor(cursor, &c); err != nil {
		return nil, 0, err
	}

	if c.List != key {
		return nil, 0, berth.Errorf(berth.KindInvalid, "the cursor is of a list with other filters or another sort; "+
			"send both as for the page before, or no cursor to begin anew")
	}

	return &c.At, c.Total, nil
}

// nextCursor is the cursor of the next page; empty = it is the last.
func nextCursor(next *berth.Position, key string, total int) string {
	if next == nil {
		return ""
	}

	return writeCursor(listCursor{List: key, At: *next, Total: total})
}
