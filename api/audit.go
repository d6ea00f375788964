package api

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/berthml/berth"
)

// auditTimeout bounds the write that follows the answer's making.
const auditTimeout = 2 * time.Second

// harmless are the routes that change nothing although they are no GET.
var harmless = map[string]bool{base + "/sweep-validations": true, base + "/sweep-previews": true}

// audit notes every call that changes something, also one that was refused;
// but not one that came too often, or a flood would fill the audit log.
func (s *Server) audit(c *gin.Context) {
	c.Next()

	if c.Request.Method == http.MethodGet || harmless[c.FullPath()] || c.Writer.Status() == http.StatusTooManyRequests {
		return
	}

	object := cmp.Or(c.Param("id"), strings.TrimPrefix(c.Writer.Header().Get("Location"), base+"/sweeps/"))

	ip, _, err := net.SplitHostPort(c.Request.RemoteAddr)
	if err != nil {
		ip = c.Request.RemoteAddr
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request.Context()), auditTimeout)
	defer cancel()

	entry := berth.AuditEntry{
		Actor:  cmp.Or(caller(c.Request.Context()).name, "unknown"),
		Action: c.Request.Method + " " + c.FullPath(),
		Object: object, IP: ip, Result: strconv.Itoa(c.Writer.Status()),
	}
	if err := s.deps.Store.Audit(ctx, entry); err != nil {
		s.log.Error("writing the audit log", "actor", entry.Actor, "action", entry.Action, "object", object, "error", err)
	}
}
