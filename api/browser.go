package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/berthml/berth"
)

// protect wraps all routes in the mandatory layers, from the outside: request
// id, security headers, Host allow-list, cross-origin protection. The
// allow-list stops DNS rebinding, which looks like the same origin to a browser
// (CVE-2025-62593 of Ray).
func (s *Server) protect(next http.Handler) (http.Handler, error) {
	crossOrigin := http.NewCrossOriginProtection()
	if s.config.origin != "" {
		_ = crossOrigin.AddTrustedOrigin(s.config.origin) // a proxy may call us by another name; withPublicURL has read it
	}

	crossOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, &httpError{
			status: http.StatusForbidden, code: codeCrossOrigin,
			detail: "The request comes from a page of another origin.",
		})
	}))

	inside, err := compressAnswers(s.allowHost(crossOrigin.Handler(next)))

	return s.identify(inside), err
}

type contextKey int

const (
	requestIDKey contextKey = iota
	principalKey
)

// goodRequestID matches a request id accepted from a caller.
var goodRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// identify gives the request an id and the response its fixed headers.
func (s *Server) identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("X-Request-ID")
		if !goodRequestID.MatchString(id) {
			var random [8]byte

			_, _ = rand.Read(random[:]) // never fails (crypto/rand)
			id = hex.EncodeToString(random[:])
		}

		header := w.Header()
		header.Set("X-Request-ID", id)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "private, no-cache") // an answer is its caller's; shared answers override this

		if s.cameByTLS(r) {
			header.Set("Strict-Transport-Security", strictTransport)
		}

		header.Set("Content-Security-Policy", "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "+
			"img-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'")

		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDKey, id)))
	})
}

// strictTransport lets browsers use TLS only with this host for a year. Its
// subdomains are not ours to decide for.
const strictTransport = "max-age=31536000"

// cameByTLS reports whether the caller came over TLS: the server's, or the TLS of the
// proxy in PublicURL. It does not trust the request's own headers, which any
// client can set.
func (s *Server) cameByTLS(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(s.config.PublicURL, "https://")
}

func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey).(string)

	return id
}

// recovered turns a panic into a problem, or breaks the connection when the
// answer has begun.
func (s *Server) recovered(c *gin.Context) {
	defer func() {
		reason := recover()
		if reason == nil {
			return
		}

		if err, ok := reason.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(reason)
		}

		s.log.Error("panic in a handler", "path", c.Request.URL.Path, "request_id", requestID(c.Request.Context()),
			"panic", reason, "stack", string(debug.Stack()))

		if c.Writer.Written() {
			panic(http.ErrAbortHandler)
		}

		s.abort(c, berth.Errorf(berth.KindInternal, "panic: %v", reason))
	}()

	c.Next()
}

// loopbackNames are the names of the server for a caller on this machine.
var loopbackNames = []string{"localhost", "127.0.0.1", "::1"}

// allowHost refuses requests for any name that is not ours.
func (s *Server) allowHost(next http.Handler) http.Handler {
	allowed := slices.Clone(loopbackNames)

	for _, host := range s.config.AllowedHosts { // in any case, and with the port, as people type them
		allowed = append(allowed, hostName(strings.TrimSpace(host)))
	}

	if host, _, err := net.SplitHostPort(s.config.Address); err == nil && host != "" {
		allowed = append(allowed, hostName(host))
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(allowed, hostName(r.Host)) {
			s.fail(w, r, &httpError{
				status: http.StatusMisdirectedRequest, code: codeHost,
				detail: "Berth is not known as " + strings.ToValidUTF8(r.Host, "?") + " here; start the server with --allowed-hosts to add a name.",
			})

			return
		}

		next.ServeHTTP(w, r)
	})
}

// hostName is a Host header without its port, in lower case.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}

	host = strings.TrimSuffix(strings.ToLower(host), ".")

	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}
