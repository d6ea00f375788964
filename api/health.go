package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// pingTimeout bounds the question to one part.
const pingTimeout = 2 * time.Second

// live says that the process answers.
func (s *Server) live(c *gin.Context) { c.String(http.StatusOK, "ok\n") }

// ready says which of the parts Berth depends on answers.
func (s *Server) ready(c *gin.Context) {
	status := http.StatusOK
	parts := make(map[string]string)

	for name, part := range map[string]Pinger{"database": s.deps.Store, "temporal": s.deps.Temporal} {
		parts[name] = "ok"

		if err := ping(c.Request.Context(), part); err != nil {
			status = http.StatusServiceUnavailable
			parts[name] = err.Error()
		}
	}

	c.JSON(status, gin.H{"ready": status == http.StatusOK, "parts": parts})
}

func ping(ctx context.Context, part Pinger) error {
	if part == nil {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()

	return part.Ping(ctx)
}
