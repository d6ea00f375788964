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

// auditObject is how many bytes of an action's object the audit log keeps: more
// than any id or name of ours has, and less than a path may have.
const auditObject = 200

// audit notes every call of a known caller that changes something, also a
// refused one; it does not note rate-limited calls, or a flood would fill the
// audit log.
func (s *Server) audit(c *gin.Context) {
	c.Next()

	who := caller(c.Request.Context())

	if who.role == "" || c.Request.Method == http.MethodGet || harmless[c.FullPath()] || c.Writer.Status() == http.StatusTooManyRequests {
		return
	}

	object := cmp.Or(c.Param("id"), c.Param("name"), strings.TrimPrefix(c.Writer.Header().Get("Location"), base+"/sweeps/"))

	ip := remoteIP(c.Request)

	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request.Context()), auditTimeout)
	defer cancel()

	entry := berth.AuditEntry{
		Actor:  who.name,
		Action: c.Request.Method + " " + c.FullPath(),
		Object: boundedText(object), IP: ip, Result: strconv.Itoa(c.Writer.Status()),
	}
	if err := s.deps.Store.Audit(ctx, entry); err != nil {
		s.log.Error("writing the audit log", "actor", entry.Actor, "action", entry.Action, "object", entry.Object, "error", err)
	}
}

// boundedText is text of at most auditObject bytes, whole characters.
func boundedText(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), auditObject)], "")
}

// remoteIP is the address that a request came from.
func remoteIP(r *http.Request) string {
	ip, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}

	return ip
}
