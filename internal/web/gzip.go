package web

import (
	"net/http"
	"strconv"
	"strings"
)

// TakesGzip reads Accept-Encoding (RFC 9110, section 12.5.3), where * stands for
// every unnamed coding.
func TakesGzip(request http.Header) (takes bool) {
	for coding := range strings.SplitSeq(strings.Join(request.Values("Accept-Encoding"), ","), ",") {
		name, parameter, _ := strings.Cut(coding, ";")
		if name = strings.ToLower(strings.TrimSpace(name)); name != "gzip" && name != "*" {
			continue
		}

		_, quality, given := strings.Cut(strings.TrimSpace(parameter), "=")
		q, err := strconv.ParseFloat(quality, 64)
		takes = !given || err == nil && q > 0

		if name == "gzip" {
			return takes
		}
	}

	return takes
}
