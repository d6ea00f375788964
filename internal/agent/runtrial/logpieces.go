package runtrial

import (
	"slices"
	"time"

	"github.com/berthml/berth"
)

// store queues the part of a chunk that is not in the database yet.
func (o *output) store(c berth.LogChunk) {
	from, to := o.offset, o.offset+int64(len(c.Data))
	o.offset = to

	if to <= o.run.who.LogOffset {
		return
	}

	if !o.cut && from >= o.run.config.Bounds.LogLimit {
		o.cut, o.cutAt = true, from
		o.push()
		o.pieces = append(o.pieces, berth.LogPiece{
			Offset: from, Stream: streamBerth, At: c.At,
			Data: []byte("\n[berth: the log limit is reached; of what follows the last " + berth.BytesText(o.run.config.Bounds.LogEnd) + " are kept]\n"),
		})
	}

	if o.cut {
		o.last.add(berth.LogPiece{Offset: from, Stream: c.Stream, At: c.At, Data: slices.Clone(c.Data)}, o.run.config.Bounds.LogEnd)

		return
	}

	data := c.Data[max(o.run.who.LogOffset-from, 0):]

	if o.piece.Stream != c.Stream || len(o.piece.Data)+len(data) > pieceBytes {
		o.push()
		o.piece = berth.LogPiece{Offset: to - int64(len(data)), Stream: c.Stream}
	}

	o.piece.At = c.At
	o.piece.Data = append(o.piece.Data, data...)
}

// push ends the piece that is being filled.
func (o *output) push() {
	if len(o.piece.Data) > 0 {
		o.pieces = append(o.pieces, o.piece)
	}

	o.piece = berth.LogPiece{}
}

// mark says something in the log, at its end. Marks there are one piece: an
// offset is stored once.
func (o *output) mark(text string) {
	data := []byte("\n[berth: " + o.run.mask.Text(text) + "]\n")

	if last := len(o.pieces) - 1; last >= 0 && o.pieces[last].Stream == streamBerth && o.pieces[last].Offset == o.offset {
		o.pieces[last].Data = append(o.pieces[last].Data, data...)

		return
	}

	o.pieces = append(o.pieces, berth.LogPiece{Offset: o.offset, Stream: streamBerth, At: time.Now().UTC(), Data: data})
}

// logEnd is the end of a log that is longer than its limit: the reason why a job of
// many hours failed is there.
type logEnd struct {
	pieces []berth.LogPiece
	bytes  int64
}

// add takes in a piece, and drops the oldest as long as the rest has bound bytes.
func (e *logEnd) add(p berth.LogPiece, bound int64) {
	e.pieces = append(e.pieces, p)
	e.bytes += int64(len(p.Data))

	for first := int64(len(e.pieces[0].Data)); e.bytes-first >= bound; first = int64(len(e.pieces[0].Data)) {
		e.pieces, e.bytes = e.pieces[1:], e.bytes-first
	}
}

// after is what is kept behind the mark at an offset, which only one piece may have.
func (e *logEnd) after(mark int64) []berth.LogPiece {
	kept := slices.Clone(e.pieces)
	if len(kept) > 0 && kept[0].Offset == mark {
		kept[0].Offset, kept[0].Data = kept[0].Offset+1, kept[0].Data[1:]
	}

	return kept
}
