package api

import (
	"time"

	"github.com/gin-gonic/gin"
)

// SetRecheck says how long streams outlive their caller's token.
func SetRecheck(s *Server, d time.Duration) { s.recheck = d }

// SetIdle says after how long a stream says that it lives.
func SetIdle(s *Server, d time.Duration) { s.idle = d }

// Routes is every registered route.
func Routes(s *Server) (gin.RoutesInfo, error) {
	engine, err := s.routes()
	if err != nil {
		return nil, err
	}

	return engine.Routes(), nil
}

// SetLook says how often a server's certificate is read again.
func SetLook(c *Certificate, every time.Duration) { c.every = every }

// SetNow gives a certificate another clock.
func SetNow(c *Certificate, now func() time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.now = now
}

// Origin is that of the public URL.
func Origin(c Config) (string, error) {
	c, err := c.withPublicURL()

	return c.origin, err
}
