package api

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// gzipFrom is the shortest body that is compressed: less fits a packet anyway.
const gzipFrom = 1 << 10

// compressAnswers compresses JSON and pages for clients that accept gzip. Other content,
// such as streams and logs, passes unchanged.
func compressAnswers(next http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(gzipFrom), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false),
		gzhttp.ContentTypes([]string{
			"application/json", "application/problem+json", "application/schema+json", "text/html", "text/css", "text/javascript", "image/svg+xml",
		}))
	if err != nil {
		return nil, err
	}

	return wrap(next), nil
}
