package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
)

const (
	// sessionCookie is how api/openapi.yaml calls it.
	sessionCookie = "berth_session"
	// sessionLife is how long a browser stays logged in. A person enters a token
	// once a month, and a browser that was lost is logged out within a month even
	// when its user revokes nothing.
	sessionLife = 30 * 24 * time.Hour
	// loginBytes is the largest body of a login, whose caller is not known yet. A
	// token is 49 bytes.
	loginBytes = 4 << 10
)

const (
	wrongToken   = "The token is not valid; an administrator makes one with `berth token create`."
	sessionEnded = "The session has ended, or its token has; log in again with a valid token."
)

// sessionOf is the session that decides who calls, as the browser sent it. An
// Authorization header wins over it.
func sessionOf(r *http.Request) (text string, ok bool) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil || r.Header.Get("Authorization") != "" {
		return "", false
	}

	return cookie.Value, true
}

// bySession finds the caller by a session, which has the name and role of its
// token.
func (s *Server) bySession(ctx context.Context, text string) (principal, error) {
	session, err := s.deps.Store.SessionByHash(ctx, hashSecret(text))

	switch {
	case berth.KindOf(err) == berth.KindNotFound:
		return principal{}, unauthorized(sessionEnded)
	case err != nil:
		return principal{}, err
	default:
		token := session.Token

		return principal{
			name: token.Name, role: roles[token.Role], token: token.ID, knownBy: openapi.KnownBySession, expires: &session.ExpiresAt,
		}, nil
	}
}

// limitLogin keeps validation from reading a large body of an unknown caller.
func (s *Server) limitLogin(c *gin.Context) {
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, loginBytes)
}

// authenticateLogin finds out who logs in, by the token in the body alone.
func (s *Server) authenticateLogin(c *gin.Context) {
	var login openapi.NewSession

	if err := json.NewDecoder(c.Request.Body).Decode(&login); err != nil {
		s.fail(c.Writer, c.Request, invalidRequest([]openapi.ProblemItem{{Code: codeBadRequest, Detail: err.Error()}}))
		c.Abort()

		return
	}

	who, err := s.byToken(c.Request.Context(), login.Token, wrongToken)
	s.admit(c, who, err)
}

// logIn is POST /session: it makes a session in place of the one that the
// browser had.
func (s *Server) logIn(c *gin.Context) {
	ctx, who := c.Request.Context(), caller(c.Request.Context())

	if err := s.endSession(c.Request); err != nil {
		s.fail(c.Writer, c.Request, err)

		return
	}

	text := newSecret()

	expires, err := s.deps.Store.CreateSession(ctx, who.token, hashSecret(text), sessionLife)
	if berth.KindOf(err) == berth.KindNotFound {
		err = unauthorized(wrongToken) // it was revoked a moment ago
	}

	if err != nil {
		s.fail(c.Writer, c.Request, err)

		return
	}

	who.knownBy, who.expires = openapi.KnownBySession, &expires

	setSession(c, text, max(int(time.Until(expires).Seconds()), 1))
	c.JSON(http.StatusCreated, toMe(who))
}

// logOut is DELETE /session.
func (s *Server) logOut(c *gin.Context) {
	if cookie, err := c.Request.Cookie(sessionCookie); err == nil {
		if who, err := s.bySession(c.Request.Context(), cookie.Value); err == nil {
			setCaller(c, who) // for the audit log
		}
	}

	if err := s.endSession(c.Request); err != nil {
		s.fail(c.Writer, c.Request, err)

		return
	}

	forgetSession(c)
	c.Status(http.StatusNoContent)
}

// endSession deletes the session whose cookie a browser sent, if any.
func (s *Server) endSession(r *http.Request) error {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return nil //nolint:nilerr // there is none
	}

	return s.deps.Store.DeleteSession(r.Context(), hashSecret(cookie.Value))
}

// forgetSession makes the browser drop its cookie.
func forgetSession(c *gin.Context) { setSession(c, "", -1) }

// setSession sends the cookie, for so many seconds; below 0 = it is dropped.
// Scripts cannot read it, and pages of other sites cannot send it along with
// what they change or read.
func setSession(c *gin.Context, text string, seconds int) {
	http.SetCookie(c.Writer, &http.Cookie{ //nolint:gosec // over plain HTTP a browser would never send a Secure cookie back
		Name: sessionCookie, Value: text, Path: "/", MaxAge: seconds,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: c.Request.TLS != nil,
	})
}
