package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/berthml/berth"
)

// Role is what a token may do; a larger one may do what a smaller one may.
type role int

const (
	roleNone role = iota
	roleViewer
	roleOperator
	roleAdmin
)

// roles are the words for them, as stored.
var roles = map[string]role{"viewer": roleViewer, "operator": roleOperator, "admin": roleAdmin}

// principal is who calls.
type principal struct {
	name  string
	role  role
	token string // id; empty for local
}

// local is who calls on a workstation where nobody made a token.
var local = principal{name: "local", role: roleAdmin}

const (
	tokenPrefix = "berth_"
	tokenBytes  = 32
	shownPrefix = len(tokenPrefix) + 6 // of a token, so that a person can tell tokens apart
)

// NewToken makes a token: its text, which is shown once, and what is stored.
func NewToken() (text string, hash []byte, prefix string) {
	var random [tokenBytes]byte

	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	text = tokenPrefix + base64.RawURLEncoding.EncodeToString(random[:])

	return text, hashToken(text), text[:shownPrefix]
}

func hashToken(text string) []byte {
	sum := sha256.Sum256([]byte(text))

	return sum[:]
}

// authenticate finds out who calls and refuses what their role may not do:
// viewers read, operators also change things, admins also see and make tokens.
func (s *Server) authenticate(c *gin.Context) {
	who, err := s.principal(c.Request)
	if err == nil && who.role < needed(c.Request.Method, c.FullPath()) {
		err = &httpError{
			status: http.StatusForbidden, code: codeForbidden,
			detail: "The token's role does not allow this.",
		}
	}

	c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), principalKey, who))

	if err != nil {
		s.fail(c.Writer, c.Request, err)
		c.Abort()
	}
}

// needed is the role a route asks for.
func needed(method, path string) role {
	switch {
	case strings.HasPrefix(path, base+"/tokens"):
		return roleAdmin
	case method == http.MethodGet:
		return roleViewer
	default:
		return roleOperator
	}
}

// principal finds the caller by the token it sent. Without one, a loopback
// server on which no valid token exists takes the caller for its owner.
func (s *Server) principal(r *http.Request) (principal, error) {
	ctx := r.Context()
	denied := &httpError{
		status: http.StatusUnauthorized, code: codeUnauthorized,
		detail: "Send Authorization: Bearer with a valid token; an administrator makes one with `berth token create`.",
	}

	if header := r.Header.Get("Authorization"); header != "" {
		kind, text, _ := strings.Cut(header, " ")
		if !strings.EqualFold(kind, "Bearer") || !strings.HasPrefix(text, tokenPrefix) {
			return principal{}, denied
		}

		token, err := s.deps.Store.TokenByHash(ctx, hashToken(text))

		switch {
		case berth.KindOf(err) == berth.KindNotFound, err == nil && !token.Valid:
			return principal{}, denied
		case err != nil:
			return principal{}, err
		default:
			return principal{name: token.Name, role: roles[token.Role], token: token.ID}, nil
		}
	}

	tokens, err := s.deps.Store.CountTokens(ctx)

	switch {
	case err != nil:
		return principal{}, err
	case tokens > 0 || !s.loopback():
		return principal{}, denied
	default:
		return local, nil
	}
}

// loopback reports whether only this machine can reach the server.
func (s *Server) loopback() bool {
	address := s.Addr()
	if address == "" {
		address = s.config.Address
	}

	return isLoopback(address)
}

// caller is who the request came from.
func caller(ctx context.Context) principal {
	who, _ := ctx.Value(principalKey).(principal)

	return who
}
