package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/berthml/berth/internal/web"
)

// serveWeb serves the web interface to unknown callers, too: its pages contain
// only code that calls the API.
func (s *Server) serveWeb(c *gin.Context, missing error) error {
	if c.Request.Method != http.MethodGet && c.Request.Method != http.MethodHead {
		return missing
	}

	c.Status(http.StatusOK) // NoRoute begins with 404

	switch s.web.Serve(c.Writer, c.Request) {
	case web.NotAcceptable:
		return &httpError{status: http.StatusNotAcceptable, code: codeNotAcceptable, detail: "Only a page is here."}
	case web.Missing:
		return missing
	default:
		return nil
	}
}
