package berth

import "time"

// LogPiece is a stored piece of an attempt's log, Offset bytes from its start.
type LogPiece struct {
	Offset int64
	Stream string
	At     time.Time
	Data   []byte
}
