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

	docs, err := newDocs(check.doc)
	if err != nil {
		return nil, err
	}

	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false

	if err := engine.SetTrustedProxies(nil); err != nil { // trust no X-Forwarded-For header
		return nil, err
	}

	engine.NoRoute(s.noRoute)
	engine.NoMethod(s.noMethod)
	engine.GET("/livez", s.live)
	engine.GET("/readyz", s.ready)
	// Editors send no token, and the schema is the same everywhere.
	engine.GET(base+"/sweep-schema.json", check.check, func(c *gin.Context) { c.Data(http.StatusOK, "application/schema+json", spec.Schema) })

	engine.GET("/healthz", s.authenticateUnlessDown, s.throttle, s.health)
	engine.GET("/api/docs", s.authenticate, s.throttle, docs.serve)

	// These two come before the caller is known: a login makes it known, and a logout refuses no caller.
	engine.POST(base+"/session", s.limitLogin, check.check, s.authenticateLogin, s.throttle, s.audit, s.logIn)
	engine.DELETE(base+"/session", check.check, s.audit, s.logOut)

	guarded := engine.Group("", s.authenticate, s.throttle, s.audit, s.authorize, check.check)
	s.registerByHand(guarded.Group(base))

	bad := func(c *gin.Context, err error) {
		s.fail(c.Writer, c.Request, invalidRequest([]openapi.ProblemItem{{Code: codeBadRequest, Detail: err.Error()}}))
		c.Abort()
	}
	failed := func(c *gin.Context, err error) {
		s.fail(c.Writer, c.Request, err)
		c.Abort()
	}

	strict := openapi.NewStrictHandlerWithOptions(&handlers{Server: s}, nil, openapi.StrictGinServerOptions{
		RequestErrorHandlerFunc: bad, HandlerErrorFunc: failed, ResponseErrorHandlerFunc: failed,
	})
	openapi.RegisterHandlersWithOptions(guarded, strict, openapi.GinServerOptions{
		BaseURL:      base,
		ErrorHandler: func(c *gin.Context, err error, _ int) { bad(c, err) },
	})

	return engine, nil
}

// registerByHand adds the streams and the routes that read a sweep file.
func (s *Server) registerByHand(v1 *gin.RouterGroup) {
	v1.POST("/sweeps", s.createSweep)
	v1.POST("/sweep-validations", s.validateSweep)
	v1.POST("/sweep-previews", s.previewSweep)
	v1.GET("/sweeps/:id/export", s.exportSweep)
	v1.GET("/attempts/:id/log", s.readLog)
	v1.GET("/trials/:id/files/*path", s.readFile)
	v1.GET("/events", s.streamEvents)
	v1.GET("/openapi.yaml", func(c *gin.Context) {
		c.Data(http.StatusOK, "application/yaml; charset=utf-8", description)
	})
}

// handlers are the generated strict interface.
type handlers struct {
	*Server
}

var _ openapi.StrictServerInterface = (*handlers)(nil)

func (s *Server) noMethod(c *gin.Context) {
	s.fail(c.Writer, c.Request, &httpError{
		status: http.StatusMethodNotAllowed, code: codeMethod, detail: "Allowed here: " + c.Writer.Header().Get("Allow") + ".",
	})
}

// noRoute serves the web interface, and problems below /api.
func (s *Server) noRoute(c *gin.Context) {
	path := c.Request.URL.Path
	missing := &httpError{status: http.StatusNotFound, code: "not_found", detail: "There is nothing at " + path + "; see /api/docs."}

	switch {
	case path == "/api" || strings.HasPrefix(path, "/api/"):
		s.fail(c.Writer, c.Request, missing)
	case s.web != nil:
		s.serveWeb(c, missing)
	case path == "/":
		c.Redirect(http.StatusFound, "/api/docs")
	default:
		s.fail(c.Writer, c.Request, missing)
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
