package api

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berthml/berth/internal/web"
)

// gzipFrom is the shortest body that is compressed: less fits a packet anyway.
const gzipFrom = 1 << 10

// gzipSuffix distinguishes the entity tag of a compressed body from the
// uncompressed body's: a strong tag stands for the sent bytes (RFC 9110, section
// 8.8.3.3).
const gzipSuffix = "-gzip"

// zippers are used again: one takes 800 kB.
var zippers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid

	return w
}}

// compressAnswers compresses JSON for clients that accept gzip, gives responses to reads
// an entity tag, and answers 304 without a body when the caller has the same
// version. Other content, such as streams and logs, passes unchanged.
func compressAnswers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w, request: r}
		next.ServeHTTP(a, r)
		a.sendAnswer()
	})
}

// answer keeps a JSON body until it is whole.
type answer struct {
	http.ResponseWriter

	request *http.Request
	status  int // 0 = nothing was written
	kept    bool
	body    bytes.Buffer
}

// WriteHeader decides by the type of the content.
func (a *answer) WriteHeader(status int) {
	if a.status != 0 {
		return
	}

	a.status = status

	kind, _, _ := strings.Cut(a.Header().Get("Content-Type"), ";")
	if a.kept = status != http.StatusNoContent && strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "json"); !a.kept {
		a.ResponseWriter.WriteHeader(status)
	}
}

// Write keeps a part of JSON, and passes all else on.
func (a *answer) Write(data []byte) (int, error) {
	a.WriteHeader(http.StatusOK)

	if a.kept {
		return a.body.Write(data)
	}

	return a.ResponseWriter.Write(data)
}

// Flush is for streams; JSON is sent when it is whole.
func (a *answer) Flush() {
	if !a.kept {
		_ = http.NewResponseController(a.ResponseWriter).Flush() // a client that is gone shows at the next write
	}
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// sendAnswer sends the buffered response.
func (a *answer) sendAnswer() {
	if !a.kept {
		return
	}

	header, body := a.Header(), a.body.Bytes()
	header.Add("Vary", "Accept-Encoding")

	zipped := len(body) >= gzipFrom && web.TakesGzip(a.request.Header)

	if a.status == http.StatusOK && a.request.Method == http.MethodGet {
		sum := sha256.Sum256(body)
		tag := base64.RawURLEncoding.EncodeToString(sum[:16])

		if zipped {
			tag += gzipSuffix
		}

		header.Set("ETag", `"`+tag+`"`)
	}

	if zipped {
		body = gzipBody(body)
		header.Set("Content-Encoding", "gzip")
	}

	header.Set("Content-Length", strconv.Itoa(len(body)))

	if header.Get("ETag") != "" {
		a.request.Header.Del("Range") // only If-None-Match is for this
		http.ServeContent(a.ResponseWriter, a.request, "", time.Time{}, bytes.NewReader(body))

		return
	}

	a.ResponseWriter.WriteHeader(a.status)
	_, _ = a.ResponseWriter.Write(body) // a client that is gone needs no answer
}

func gzipBody(body []byte) []byte {
	var out bytes.Buffer

	w, _ := zippers.Get().(*gzip.Writer) // it holds nothing else
	defer zippers.Put(w)

	w.Reset(&out)
	_, _ = w.Write(body) // a write to the recorder cannot fail
	_ = w.Close()

	return out.Bytes()
}
