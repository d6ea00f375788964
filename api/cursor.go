package api

import (
	"encoding/base64"
	"encoding/json"

	"github.com/berthml/berth"
)

// A cursor is the sort key of the last row of a page, in base64url JSON.

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
