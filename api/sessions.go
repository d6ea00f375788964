package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
)

const (
	// sessionCookie is how the name of the cookie begins. Cookies know no ports, so
	// the installation follows: two Berths on one host, as behind `ssh -L`, keep
	// their browsers apart.
	sessionCookie = "berth_session"
	// sessionTries is how many cookies with that name are looked up: another
	// program on the host's other ports can set one too.
	sessionTries = 4
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

// cookieName is the cookie of this installation.
func (s *Server) cookieName() string {
	if s.config.Installation == "" {
		return sessionCookie
	}

	return sessionCookie + "_" + s.config.Installation[:min(8, len(s.config.Installation))]
}

// sessionsOf are the sessions that a browser sent.
func (s *Server) sessionsOf(r *http.Request) []*http.Cookie {
	cookies := r.CookiesNamed(s.cookieName())

	return cookies[:min(sessionTries, len(cookies))]
}

// bySession finds the caller by the first valid session that the browser sent,
// which has the name and role of its token. known is false when it sent none
// that is valid.
func (s *Server) bySession(r *http.Request) (who principal, known bool, err error) {
	for _, cookie := range s.sessionsOf(r) {
		session, err := s.deps.Store.SessionByHash(r.Context(), hashSecret(cookie.Value))

		switch {
		case berth.KindOf(err) == berth.KindNotFound:
		case err != nil:
			return principal{}, false, err
		default:
			token := session.Token

			return principal{
				name: token.Name, role: openapi.TokenRole(token.Role), token: token.ID, knownBy: openapi.KnownBySession, expires: &session.ExpiresAt,
			}, true, nil
		}
	}

	return principal{}, false, nil
}

// limitLogin keeps validation from reading a large body of an unknown caller.
func (s *Server) limitLogin(c *gin.Context) {
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, loginBytes)
}

// authenticateLogin identifies the caller by the token in the body alone.
func (s *Server) authenticateLogin(c *gin.Context) error {
	var login openapi.NewSession

	if err := json.NewDecoder(c.Request.Body).Decode(&login); err != nil {
		return badParameter("", err.Error())
	}

	who, err := s.byToken(c.Request.Context(), strings.TrimSpace(login.Token), wrongToken)

	return s.admitCaller(c, who, err)
}

// logIn is POST /session: it makes a session in place of the browser's earlier
// one.
func (s *Server) logIn(c *gin.Context) error {
	ctx, who := c.Request.Context(), caller(c.Request.Context())

	text := newSecret()

	expires, err := s.deps.Store.CreateSession(ctx, who.token, hashSecret(text), sessionLife)
	if berth.KindOf(err) == berth.KindNotFound {
		err = unauthorized(wrongToken) // it was revoked a moment ago
	}

	if err == nil {
		err = s.endSessions(c.Request) // only now: a log-in that fails ends no session
	}

	if err != nil {
		return err
	}

	who.knownBy, who.expires = openapi.KnownBySession, &expires

	// The browser's clock decides when it drops the cookie, the database's when the
	// session ends: a cookie that lasts longer does no harm.
	s.setSession(c, text, int(sessionLife.Seconds()))
	c.JSON(http.StatusCreated, toMe(who))

	return nil
}

// logOut is DELETE /session. The browser drops its cookie also when the session
// cannot be deleted: a script of a page could not make it do so.
func (s *Server) logOut(c *gin.Context) error {
	if who, known, err := s.bySession(c.Request); err == nil && known {
		setCaller(c, who) // for the audit log
	}

	s.setSession(c, "", -1)

	if err := s.endSessions(c.Request); err != nil {
		return err
	}

	c.Status(http.StatusNoContent)

	return nil
}

// endSessions deletes the sessions that a browser sent.
func (s *Server) endSessions(r *http.Request) error {
	for _, cookie := range s.sessionsOf(r) {
		if err := s.deps.Store.DeleteSession(r.Context(), hashSecret(cookie.Value)); err != nil {
			return err
		}
	}

	return nil
}

// setSession sends the cookie, for this many seconds; below 0 = it is dropped.
// Scripts cannot read it, and pages of other sites cannot send it along with
// reads or changes. The page's origin says whether it came over TLS, also where a
// proxy speaks TLS for the server.
func (s *Server) setSession(c *gin.Context, text string, seconds int) {
	http.SetCookie(c.Writer, &http.Cookie{ //nolint:gosec // over plain HTTP a browser would never send a Secure cookie back
		Name: s.cookieName(), Value: text, Path: "/", MaxAge: seconds,
		HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: s.cameByTLS(c.Request) || strings.HasPrefix(c.GetHeader("Origin"), "https://"),
	})
}
