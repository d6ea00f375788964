package api

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// base is where the description's paths begin.
const base = "/api/v1"

// description is served as it was written.
//
//go:embed openapi.yaml
var description []byte

// DescriptionSum is the SHA-256, in hex, of the description of the API.
func DescriptionSum() string {
	sum := sha256.Sum256(description)

	return hex.EncodeToString(sum[:])
}

// routes is the engine, in this order: authentication, rate limit, the audit
// log, authorization, validation, then a handler. Requests refused before the
// audit log leave no entry.
func (s *Server) routes() (*gin.Engine, error) {
	gin.SetMode(gin.ReleaseMode)

	check, err := s.newValidator()
	if err != nil {
		return nil, err
	}

	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false

	if err := engine.SetTrustedProxies(nil); err != nil { // trust no X-Forwarded-For header
		return nil, err
	}

	engine.Use(s.recovered)
	engine.NoRoute(s.step(s.noRoute))
	engine.NoMethod(s.step(s.noMethod))

	authenticated, throttled, valid := s.step(s.authenticate), s.step(s.throttle), s.step(check.check)

	engine.GET("/livez", s.live)
	engine.GET("/readyz", s.ready)
	// Editors send no token, and the schema is the same everywhere.
	engine.GET(base+"/sweep-schema.json", valid, func(c *gin.Context) { c.Data(http.StatusOK, "application/schema+json", spec.Schema) })

	engine.GET("/healthz", s.step(s.authenticateUnlessDown), throttled, s.health)
	// Browsers show plain text, and keep YAML as a file.
	engine.GET("/api/docs", authenticated, throttled, func(c *gin.Context) { c.Data(http.StatusOK, "text/plain; charset=utf-8", description) })

	// These two come before the caller is known: a login makes it known, and a logout refuses no caller.
	engine.POST(base+"/session", s.limitLogin, valid, s.step(s.authenticateLogin), throttled, s.audit, s.step(s.logIn))
	engine.DELETE(base+"/session", valid, s.audit, s.step(s.logOut))

	guarded := engine.Group("", authenticated, throttled, s.audit, s.step(s.authorize), valid)
	s.registerByHand(guarded.Group(base))

	bad := func(c *gin.Context, err error) { s.abort(c, badParameter("", err.Error())) }

	strict := openapi.NewStrictHandlerWithOptions(&handlers{Server: s}, nil, openapi.StrictGinServerOptions{
		RequestErrorHandlerFunc: bad, HandlerErrorFunc: s.abort, ResponseErrorHandlerFunc: s.abort,
	})
	openapi.RegisterHandlersWithOptions(guarded, strict, openapi.GinServerOptions{
		BaseURL:      base,
		ErrorHandler: func(c *gin.Context, err error, _ int) { bad(c, err) },
	})

	return engine, nil
}

// registerByHand adds the streams and the routes that read a sweep file.
func (s *Server) registerByHand(v1 *gin.RouterGroup) {
	v1.POST("/sweeps", s.step(s.createSweep))
	v1.POST("/sweep-validations", s.step(s.validateSweep))
	v1.POST("/sweep-previews", s.step(s.previewSweep))
	v1.GET("/sweeps/:id/export", s.step(s.exportSweep))
	v1.GET("/attempts/:id/log", s.step(s.readLog))
	v1.GET("/trials/:id/files/*path", s.step(s.readFile))
	v1.GET("/events", s.step(s.streamEvents))
	v1.GET("/openapi.yaml", func(c *gin.Context) {
		c.Data(http.StatusOK, "application/yaml; charset=utf-8", description)
	})
}

// handlers are the generated strict interface.
type handlers struct {
	*Server
}

var _ openapi.StrictServerInterface = (*handlers)(nil)

// step makes gin's handler of one that returns an error as long as it has not
// answered.
func (s *Server) step(do func(c *gin.Context) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := do(c); err != nil {
			s.abort(c, err)
		}
	}
}

// abort answers with a problem, and runs no further handler.
func (s *Server) abort(c *gin.Context, err error) {
	s.fail(c.Writer, c.Request, err)
	c.Abort()
}

func (s *Server) noMethod(c *gin.Context) error {
	return &httpError{
		status: http.StatusMethodNotAllowed, code: codeMethod, detail: "Allowed here: " + c.Writer.Header().Get("Allow") + ".",
	}
}

// noRoute serves the web interface, and problems below /api.
func (s *Server) noRoute(c *gin.Context) error {
	path := c.Request.URL.Path
	missing := &httpError{status: http.StatusNotFound, code: "not_found", detail: "There is nothing at " + path + "; see /api/docs."}

	switch {
	case path == "/api" || strings.HasPrefix(path, "/api/"):
		return missing
	case s.web != nil:
		return s.serveWeb(c, missing)
	case path == "/":
		c.Redirect(http.StatusFound, "/api/docs")

		return nil
	default:
		return missing
	}
}

// isLoopback reports whether only this machine reaches host:port.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}

	ip := net.ParseIP(host)

	return host == "localhost" || ip != nil && ip.IsLoopback()
}
