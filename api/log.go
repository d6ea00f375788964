package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
)

const (
	logPieces  = 256 // read from the database at once
	logLimit   = 1 << 20
	logFollow  = 300 * time.Millisecond // between looks for more
	maxFollow  = 12 * time.Hour
	nextOffset = "X-Next-Offset"
)

// readLog is GET /attempts/{id}/log.
func (s *Server) readLog(c *gin.Context) error {
	ctx := c.Request.Context()

	attempt, err := s.attempt(ctx, c.Param("id"))
	if err != nil {
		return err
	}

	offset, limit := int64(0), int64(logLimit) // validation has read both already
	if text := c.Query("offset"); text != "" {
		offset, _ = strconv.ParseInt(text, 10, 64)
	}

	if text := c.Query("limit"); text != "" {
		limit, _ = strconv.ParseInt(text, 10, 64)
	}

	if c.Query("follow") == "true" {
		done, err := s.openStream(ctx)
		if err != nil {
			return err
		}
		defer done()

		if id, err := strconv.ParseInt(c.GetHeader("Last-Event-ID"), 10, 64); err == nil {
			offset = max(offset, id)
		}

		if err := s.followLog(c.Writer, c.Request, attempt.ID, offset); err != nil {
			s.log.Debug("log stream ended", "attempt_id", attempt.ID, "error", err)
		}

		return nil
	}

	asJSON := strings.Contains(c.GetHeader("Accept"), "application/json")

	page, data, err := s.logPage(ctx, attempt, offset, limit, asJSON)
	if err != nil {
		return err
	}

	c.Header(nextOffset, strconv.FormatInt(page.NextOffset, 10))

	if asJSON {
		c.JSON(http.StatusOK, page)
	} else {
		c.Data(http.StatusOK, "text/plain; charset=utf-8", data)
	}

	return nil
}

// logPage reads at most limit bytes from offset on, as pieces and as bytes. JSON holds whole characters
// alone; of bytes it is limit exactly, which tells clients whether more follows.
func (s *Server) logPage(ctx context.Context, attempt berth.Attempt, offset, limit int64, asJSON bool) (openapi.LogPage, []byte, error) {
	page := openapi.LogPage{Data: []openapi.LogPiece{}, NextOffset: offset}
	ended := attempt.State == berth.AttemptFinished || attempt.State == berth.AttemptAbandoned

	var data []byte

	for full := false; !full && int64(len(data)) < limit; {
		pieces, err := s.deps.Store.ReadLog(ctx, attempt.ID, page.NextOffset, logPieces)
		if err != nil {
			return page, nil, err
		}

		for _, piece := range pieces {
			if before := page.NextOffset - piece.Offset; before > 0 { // others held it
				piece.Data = piece.Data[min(before, int64(len(piece.Data))):]
				piece.Offset = page.NextOffset
			}

			if room := limit - int64(len(data)); int64(len(piece.Data)) > room {
				full = true

				if whole := wholeCharacters(piece.Data, room); asJSON && (whole > 0 || len(data) > 0) {
					room = whole
				}

				piece.Data = piece.Data[:room]
			}

			if len(piece.Data) > 0 {
				data = append(data, piece.Data...)
				page.Data = append(page.Data, toLogPiece(piece))
				page.NextOffset = piece.Offset + int64(len(piece.Data))
			}

			if full {
				break
			}
		}

		if len(pieces) < logPieces {
			page.Complete = ended && !full && int64(len(data)) < limit

			break
		}
	}

	return page, data, nil
}

// wholeCharacters is end, or where the character begins that it cuts; data is longer.
func wholeCharacters(data []byte, end int64) int64 {
	for begin := end; begin >= 0 && end-begin < utf8.UTFMax; begin-- {
		if utf8.RuneStart(data[begin]) {
			return begin
		}
	}

	return end // no text
}

func toLogPiece(p berth.LogPiece) openapi.LogPiece {
	return openapi.LogPiece{
		Offset: p.Offset, Length: int64(len(p.Data)), Stream: p.Stream, At: p.At, Text: strings.ToValidUTF8(string(p.Data), "\ufffd"),
	}
}

// followLog streams the log until the attempt has ended and all was sent. A
// token that is not valid any more ends the stream within recheck, also while
// the attempt writes all the time.
func (s *Server) followLog(w http.ResponseWriter, r *http.Request, attemptID string, offset int64) error {
	ctx, cancel := context.WithTimeout(r.Context(), maxFollow)
	defer cancel()

	out, err := newStream(w, offset)
	if err != nil {
		return err
	}

	quiet, checked := time.Now(), time.Now()

	for {
		if time.Since(checked) > s.recheck {
			checked = time.Now()

			if _, err := s.principal(r); err != nil {
				return err
			}
		}

		attempt, err := s.deps.Store.GetAttempt(ctx, attemptID) // first, so that the last lines before its end are read after
		if err != nil {
			return err
		}

		page, _, err := s.logPage(ctx, attempt, offset, logLimit, true)
		if err != nil {
			return err
		}

		for _, piece := range page.Data {
			if err := out.event("piece", position(piece.Offset+piece.Length), piece); err != nil {
				return err
			}
		}

		offset = page.NextOffset

		switch {
		case page.Complete:
			return out.event("end", "", map[string]string{"state": string(attempt.State), "failure_kind": string(attempt.Kind)})
		case len(page.Data) > 0:
			quiet = time.Now()

			continue
		case time.Since(quiet) > s.idle:
			quiet = time.Now()

			if err := out.sendAlive(offset); err != nil {
				return err
			}
		}

		select {
		case <-ctx.Done():
			return nil
		case <-s.stopping:
			return nil
		case <-time.After(logFollow):
		}
	}
}
