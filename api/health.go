package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/health"
)

// pingTimeout bounds the question to one part.
const pingTimeout = 2 * time.Second

// live says that the process answers.
func (s *Server) live(c *gin.Context) { c.String(http.StatusOK, "ok\n") }

// ready says which of the parts Berth depends on answers.
func (s *Server) ready(c *gin.Context) {
	status := http.StatusOK
	parts := make(map[string]string)

	for name, ping := range map[string]func(context.Context) error{"database": s.deps.Store.Ping, "temporal": s.deps.Temporal.Ping} {
		parts[name] = "ok"

		if err := bounded(c.Request.Context(), ping); err != nil {
			status = http.StatusServiceUnavailable
			parts[name] = err.Error()
		}
	}

	c.JSON(status, gin.H{"ready": status == http.StatusOK, "parts": parts})
}

// health is GET /healthz: the state of each part and the next step, for a person
// at three in the morning. It is 503 for a problem, not for a warning.
func (s *Server) health(c *gin.Context) {
	var findings []health.Finding

	for _, part := range []struct {
		name, next string
		ping       func(context.Context) error
	}{
		{"database", "start PostgreSQL, or free its disk; running trials go on and keep their results on their hosts", s.deps.Store.Ping},
		{"temporal", "start Temporal; running trials go on, and sweeps are accepted and start when it is back", s.deps.Temporal.Ping},
	} {
		finding := health.Finding{OK: true, Part: part.name, What: "answers"}
		if err := bounded(c.Request.Context(), part.ping); err != nil {
			finding = health.Finding{Part: part.name, What: err.Error(), Next: part.next}
		}

		findings = append(findings, finding)
	}

	if s.config.Certificate != nil {
		findings = append(findings, s.config.Certificate.finding())
	}

	if ctx := c.Request.Context(); caller(ctx).name != "" {
		if state, err := s.deps.Store.Health(ctx); err != nil {
			findings = append(findings, health.Finding{
				Part: "ledger", What: err.Error(),
				Next: "look again in a moment; when it lasts, see in PostgreSQL's pg_stat_activity and pg_locks what holds its tables, and end that",
			})
		} else {
			if dir := state.Database.Dir; dir != "" && s.deps.Disk != nil {
				state.DatabaseDisk = s.deps.Disk(health.DatabaseDisk, dir)
			}

			findings = append(findings, state.Findings()...)
		}
	}

	status := http.StatusOK

	for _, f := range findings {
		if !f.OK {
			status = http.StatusServiceUnavailable
		}
	}

	c.JSON(status, gin.H{"ok": status == http.StatusOK, "findings": findings})
}

// authenticateUnlessDown is authenticate, but lets callers through while the
// database, which has the tokens, does not answer. They then get the public
// content of /readyz, and the next step.
func (s *Server) authenticateUnlessDown(c *gin.Context) error {
	if _, err := s.principal(c.Request); berth.KindOf(err) == berth.KindUnavailable {
		return nil
	}

	return s.authenticate(c)
}

// bounded asks a part, for pingTimeout at most.
func bounded(ctx context.Context, ping func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()

	return ping(ctx)
}
