package berth

import "time"

// LogPiece is a stored piece of an attempt's log, Offset bytes from its start.
type LogPiece struct {
	Offset int64     `json:"offset"`
	Stream string    `json:"stream"`
	At     time.Time `json:"at"`
	Data   []byte    `json:"data"`
}
