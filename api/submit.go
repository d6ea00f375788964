package api

import (
	"context"
	"crypto/sha256"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/preview"
	"github.com/berthml/berth/internal/spec"
)

// submission is a sweep that somebody wants.
type submission struct {
	spec  berth.Spec
	route string
	key   string // idempotency; empty = none
	body  []byte // what the key stands for
}

// submit checks what only the machines can tell, resolves the image and stores
// the sweep. created is false when an earlier call with the same key made it.
func (s *Server) submit(ctx context.Context, want submission) (sweep berth.Sweep, created bool, err error) {
	problems, _, err := s.problems(ctx, want.spec)
	if err != nil {
		return sweep, false, err
	}

	if len(problems) > 0 {
		return sweep, false, &berth.SpecError{Problems: problems}
	}

	if err := s.checkQuota(ctx, want); err != nil {
		return sweep, false, err
	}

	image, err := s.deps.Images.ResolveImage(ctx, want.spec.Image)
	if err != nil {
		return sweep, false, err
	}

	hash := sha256.Sum256(want.body)

	id, created, err := s.deps.Store.CreateSweep(ctx, berth.NewSweep{
		ID: uuid.NewString(), Spec: want.spec, ImageDigest: image.Digest, Planned: preview.Planned(want.spec),
		CreatedBy: caller(ctx).name, Route: want.route, Key: want.key, BodyHash: hash[:],
	})
	if berth.KindOf(err) == berth.KindConflict && want.key != "" {
		return sweep, false, &httpError{status: http.StatusConflict, code: codeIdempotency, detail: err.Error()}
	}

	if err != nil {
		return sweep, false, err
	}

	sweep, err = s.deps.Store.GetSweep(ctx, id)

	return sweep, created, err
}

// problems are what the administrator and the machines say about a valid spec.
func (s *Server) problems(ctx context.Context, want berth.Spec) ([]berth.Problem, []berth.Host, error) {
	hosts, err := s.deps.Store.ListHosts(ctx)
	if err != nil {
		return nil, nil, err
	}

	problems := spec.CheckPolicy(want, s.config.Policy)
	if len(hosts) > 0 { // before a machine was ever seen nothing is known to be too much
		problems = append(problems, spec.CheckCapacity(want, capacity(hosts))...)
	}

	return problems, hosts, nil
}

func capacity(hosts []berth.Host) spec.Capacity {
	var most spec.Capacity

	for _, h := range hosts {
		most.MemoryBytes = max(most.MemoryBytes, h.MemoryBytes-h.MemoryHeadroomBytes)
		most.CPUMilli = max(most.CPUMilli, h.CPUMilli)
		most.GPUs = max(most.GPUs, len(h.Devices))

		for _, d := range h.Devices {
			most.LargestGPUBytes = max(most.LargestGPUBytes, d.MemoryBytes-d.HeadroomBytes)
		}
	}

	return most
}

// readSweepFile reads and decodes the body. Errors: a *berth.SpecError.
func (s *Server) readSweepFile(r *http.Request) (berth.Spec, []byte, error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return berth.Spec{}, nil, &httpError{
			status: http.StatusUnsupportedMediaType, code: spec.CodeContentType,
			detail: "Send the sweep file as it is: " + encoding + " is not read.",
		}
	}

	body, err := io.ReadAll(r.Body)
	if err != nil {
		return berth.Spec{}, nil, err
	}

	if most := s.config.Limits.SpecBytes; int64(len(body)) > most {
		return berth.Spec{}, nil, &httpError{status: http.StatusRequestEntityTooLarge, code: spec.CodeBodyTooLarge, detail: tooLarge(most)}
	}

	decoded, err := spec.Decode(body, r.Header.Get("Content-Type"))

	return decoded, body, err
}

// createSweep is POST /sweeps.
func (s *Server) createSweep(c *gin.Context) {
	decoded, body, err := s.readSweepFile(c.Request)
	if err != nil {
		s.fail(c.Writer, c.Request, err)

		return
	}

	sweep, created, err := s.submit(c.Request.Context(), submission{
		spec: decoded, route: "POST " + base + "/sweeps", key: c.GetHeader("Idempotency-Key"), body: body,
	})
	if err != nil {
		s.fail(c.Writer, c.Request, err)

		return
	}

	out, err := s.toSweep(sweep, true)
	if err != nil {
		s.fail(c.Writer, c.Request, err)

		return
	}

	if !created {
		c.JSON(http.StatusOK, out)

		return
	}

	c.Header("Location", location(sweep.ID))
	c.JSON(http.StatusCreated, out)
}

func location(sweepID string) string { return base + "/sweeps/" + sweepID }
