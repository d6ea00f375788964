package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
)

// permissions of a token's role; a larger number includes the smaller ones. An unknown
// caller has none.
var permissions = map[openapi.TokenRole]int{openapi.Viewer: 1, openapi.Operator: 2, openapi.Admin: 3}

// principal is the caller.
type principal struct {
	name    string
	role    openapi.TokenRole // empty = not known
	token   string            // id; empty for local
	knownBy openapi.KnownBy
	expires *time.Time // when a session ends; nil without one
}

// local is the caller on a workstation where no token was ever made.
var local = principal{name: "local", role: openapi.Admin, knownBy: openapi.KnownByLocal}

const (
	tokenPrefix = "berth_"
	secretBytes = 32
	shownPrefix = len(tokenPrefix) + 6 // of a token, so that a person can tell tokens apart
)

// NewToken makes a token. It returns the text, which is shown once, and the
// stored hash and prefix.
func NewToken() (text string, hash []byte, prefix string) {
	text = tokenPrefix + newSecret()

	return text, hashSecret(text), text[:shownPrefix]
}

// newSecret is the random part of a token, or a session.
func newSecret() string {
	var random [secretBytes]byte

	_, _ = rand.Read(random[:]) // never fails (crypto/rand)

	return base64.RawURLEncoding.EncodeToString(random[:])
}

// hashSecret returns the stored hash of a token or a session.
func hashSecret(text string) []byte {
	sum := sha256.Sum256([]byte(text))

	return sum[:]
}

// authenticate identifies the caller: later handlers have a known caller.
func (s *Server) authenticate(c *gin.Context) error {
	who, err := s.principal(c.Request)

	return s.admitCaller(c, who, err)
}

// admitCaller lets a valid caller pass and refuses others.
func (s *Server) admitCaller(c *gin.Context, who principal, err error) error {
	if denied, ok := errors.AsType[*httpError](err); ok && denied.status == http.StatusUnauthorized {
		s.noteRefusal(c)
	}

	if err == nil {
		setCaller(c, who)
	}

	return err
}

// authorize refuses calls beyond the caller's role: viewers read, operators also
// change things, admins also remove machines, see and make tokens, and store
// secrets.
func (s *Server) authorize(c *gin.Context) error {
	if permissions[caller(c.Request.Context()).role] < permissions[neededRole(c.Request.Method, c.FullPath())] {
		return &httpError{status: http.StatusForbidden, code: codeForbidden, detail: "The token's role does not allow this."}
	}

	return nil
}

// neededRole is the role a route asks for. Only an admin may remove a machine: its
// resources are freed on a person's word alone (rule R3), also for other persons'
// sweeps.
func neededRole(method, path string) openapi.TokenRole {
	switch {
	case strings.HasPrefix(path, base+"/tokens"), strings.HasPrefix(path, base+"/secrets") && method != http.MethodGet,
		strings.HasPrefix(path, base+"/hosts") && method == http.MethodDelete:
		return openapi.Admin
	case method == http.MethodGet:
		return openapi.Viewer
	default:
		return openapi.Operator
	}
}

// recoveryCommand makes an admin's token without one.
const recoveryCommand = "`berth token create NAME --role admin --postgres-url URL`"

// recovery is how a person gets in where no token is known: by the database,
// whose address only the machine's administrator has.
const recovery = "On the server's machine, " + recoveryCommand + " makes one."

// unauthorized is the answer to a caller without a valid token.
func unauthorized(detail string) error {
	return &httpError{status: http.StatusUnauthorized, code: codeUnauthorized, detail: detail}
}

// principal finds the caller by its token, else by its session. Without both, a
// loopback server without any token ever takes the caller for its owner. The end
// of the last token gives its rights to no other caller. An unknown cookie
// counts as none: an earlier server may have set it.
func (s *Server) principal(r *http.Request) (principal, error) {
	ctx := r.Context()

	if text, ok := bearerToken(r); ok {
		return s.byToken(ctx, text, sendToken)
	}

	if who, known, err := s.bySession(r); known || err != nil {
		return who, err
	}

	// Another kind of Authorization is a proxy's, and a browser sends it with every
	// call; beside a session it does not matter.
	if r.Header.Get("Authorization") != "" {
		return principal{}, unauthorized(sendToken)
	}

	tokens, err := s.deps.Store.CountTokens(ctx)

	switch {
	case err != nil:
		return principal{}, err
	case tokens.Valid > 0 && len(s.sessionsOf(r)) > 0:
		return principal{}, unauthorized(sessionEnded)
	case tokens.Valid > 0:
		return principal{}, unauthorized(sendToken)
	case tokens.Made > 0:
		return principal{}, unauthorized("No token is valid any more: each has expired or was revoked. " + recovery)
	case !s.loopback():
		return principal{}, unauthorized("There is no token yet. " + recovery)
	case throughProxy(r):
		return principal{}, unauthorized("There is no token yet, and a call that came through a proxy or under another name than localhost needs one. " + recovery)
	default:
		return local, nil
	}
}

const sendToken = "Send Authorization: Bearer with a valid token; an administrator makes one with `berth token create`. " +
	"When no administrator has a token any more, " + recoveryCommand + " makes one on the server's machine."

// bearerToken is the token in the Authorization header.
func bearerToken(r *http.Request) (text string, ok bool) {
	kind, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")

	return text, strings.EqualFold(kind, "Bearer")
}

// byToken finds the caller by the text of a token. refusal is the error text
// for an invalid one.
func (s *Server) byToken(ctx context.Context, text, refusal string) (principal, error) {
	if !strings.HasPrefix(text, tokenPrefix) {
		return principal{}, unauthorized(refusal)
	}

	token, err := s.deps.Store.TokenByHash(ctx, hashSecret(text))

	switch {
	case berth.KindOf(err) == berth.KindNotFound, err == nil && !token.Valid:
		return principal{}, unauthorized(refusal)
	case err != nil:
		return principal{}, err
	default:
		return principal{name: token.Name, role: openapi.TokenRole(token.Role), token: token.ID, knownBy: openapi.KnownByToken}, nil
	}
}

// proxyHeaders are headers that proxies add to a request (RFC 7239, RFC 9110
// section 7.6.3, and nginx, Caddy, Traefik and load balancers).
var proxyHeaders = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"}

// throughProxy reports whether a request that came from loopback may be another
// machine's: a proxy passed it on, or it names a host that is not loopback.
func throughProxy(r *http.Request) bool {
	return !slices.Contains(loopbackNames, hostName(r.Host)) ||
		slices.ContainsFunc(proxyHeaders, func(name string) bool { return len(r.Header.Values(name)) > 0 })
}

// loopback reports whether only this machine can reach the server.
func (s *Server) loopback() bool {
	address := s.Addr()
	if address == "" {
		address = s.config.Address
	}

	return isLoopback(address)
}

// caller is the sender of the request.
func caller(ctx context.Context) principal {
	who, _ := ctx.Value(principalKey).(principal)

	return who
}

func setCaller(c *gin.Context, who principal) {
	c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), principalKey, who))
}
