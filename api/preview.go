package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/control/preview"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// maxPreviewShapes is how many shapes a preview lists; all are counted.
const maxPreviewShapes = 200

// codeImageUnknown is the warning of a preview that could not look at the image.
const codeImageUnknown = "W_IMAGE_UNKNOWN"

// validateSweep is POST /sweep-validations: everything that is wrong with a
// sweep file, without an image to look at and without storing anything.
func (s *Server) validateSweep(c *gin.Context) error {
	decoded, _, err := s.readSweepFile(c.Request)

	var broken *berth.SpecError

	switch {
	case errors.As(err, &broken) && specStatus(broken) != http.StatusRequestEntityTooLarge &&
		specStatus(broken) != http.StatusUnsupportedMediaType:
		c.JSON(http.StatusOK, openapi.Validation{Problems: toItems(broken.Problems), Warnings: []openapi.ProblemItem{}})

		return nil
	case err != nil:
		return err
	}

	problems, _, _, err := s.problems(c.Request.Context(), decoded)
	if err != nil {
		return err
	}

	full, err := s.toSweep(berth.Sweep{Spec: decoded}, true)
	if err != nil {
		return err
	}

	c.JSON(http.StatusOK, openapi.Validation{
		Valid: len(problems) == 0, Problems: toItems(problems), Warnings: toItems(spec.Warnings(decoded)), Spec: full.Spec,
	})

	return nil
}

// previewSweep is POST /sweep-previews.
func (s *Server) previewSweep(c *gin.Context) error {
	decoded, _, err := s.readSweepFile(c.Request)
	if err != nil {
		return err
	}

	out, err := s.preview(c.Request.Context(), decoded)
	if err != nil {
		return err
	}

	c.JSON(http.StatusOK, out)

	return nil
}

func (s *Server) preview(ctx context.Context, want berth.Spec) (openapi.Preview, error) {
	problems, hosts, _, err := s.problems(ctx, want)
	if err != nil {
		return openapi.Preview{}, err
	}

	want, unclear := spec.PinDatasets(want, capacity(hosts).Hosts)
	problems = append(problems, unclear...)

	if len(problems) > 0 {
		return openapi.Preview{}, &berth.SpecError{Problems: problems}
	}

	digest, want, unknown, err := pinImages(ctx, want, s.digest)
	if err != nil {
		return openapi.Preview{}, err
	}

	sketch, err := preview.Enumerate(want, digest)
	if err != nil {
		return openapi.Preview{}, err
	}

	secrets, err := s.secrets(ctx, want)
	if err != nil {
		return openapi.Preview{}, err
	}

	for _, m := range want.Secrets {
		sketch.NeedSecretKey(secrets[m.Name])
	}

	known, err := s.deps.Store.Footprints(ctx, sketch.Keys())
	if err != nil {
		return openapi.Preview{}, err
	}

	made, err := s.deps.Store.StagesKnown(ctx, sketch.StageKeys())
	if err != nil {
		return openapi.Preview{}, err
	}

	out := toPreview(sketch.Preview(hosts, known, made...))
	out.Image, out.ImageDigest = want.Image, digest
	out.Warnings = append(toItems(unknown), out.Warnings...)

	return out, nil
}

// digest looks at the image. That it is not there, or that no machine answers,
// is no reason not to preview the rest.
func (s *Server) digest(ctx context.Context, ref string) (digest string, warnings []berth.Problem, err error) {
	image, err := s.deps.Temporal.ResolveImage(ctx, ref)

	var broken *berth.SpecError

	switch {
	case err == nil:
		return image.Digest, nil, nil
	case errors.As(err, &broken):
		return "", asWarnings(broken.Problems), nil
	case berth.KindOf(err) == berth.KindUnavailable && ctx.Err() == nil:
		return "", []berth.Problem{{Code: codeImageUnknown, Pointer: "/image", Message: err.Error()}}, nil
	default:
		return "", nil, err
	}
}

// asWarnings gives problems that stop a sweep, and not its preview, the codes
// of warnings: W_IMAGE_MISSING for E_IMAGE_MISSING.
func asWarnings(problems []berth.Problem) []berth.Problem {
	warnings := slices.Clone(problems)

	for i := range warnings {
		if name, ok := strings.CutPrefix(warnings[i].Code, "E_"); ok {
			warnings[i].Code = "W_" + name
		}
	}

	return warnings
}

func toPreview(p preview.Preview) openapi.Preview {
	out := openapi.Preview{
		Trials: p.Trials, Enumerated: p.Enumerated, Complete: p.Complete, ShapesTotal: len(p.Shapes),
		ProbesNeeded: p.ProbesNeeded, ProbesCached: p.ProbesCached, AtOnce: p.AtOnce, Why: p.Why, Waves: p.Waves,
		Warnings: toItems(p.Warnings), Hosts: all(p.Hosts, toPreviewHost),
	}

	out.Shapes = all(p.Shapes[:min(len(p.Shapes), maxPreviewShapes)], func(s preview.Shape) openapi.PreviewShape {
		return openapi.PreviewShape{
			Key: s.Key, Values: s.Values, Trials: s.Trials, Cached: s.Cached, MemoryBytes: s.Demand.MemoryBytes,
			CPUMilli: s.Demand.CPUMilli, MemoryPeakBytes: s.Known.MemoryPeakBytes,
			DeviceClass: string(s.Class), DeviceBytes: s.Demand.DeviceBytes, ExclusiveDevice: s.Demand.ExclusiveDevice, DevicePeakBytes: s.Known.DevicePeakBytes,
			SpillBytes: s.Demand.SpillBytes,
			SizedBy:    openapi.PreviewShapeSizedBy(s.SizedBy), DurationSeconds: s.Duration.Seconds(),
		}
	})

	for _, stage := range p.Stages {
		out.Stages = append(out.Stages, openapi.PreviewStage{Name: stage.Name, Runs: stage.Runs, Known: stage.Known, DurationSeconds: stage.Each.Seconds()})
	}

	if p.Duration != nil {
		out.Duration = &openapi.PreviewDuration{MinSeconds: p.Duration.Min.Seconds(), MaxSeconds: p.Duration.Max.Seconds()}
	}

	return out
}

func toPreviewHost(h preview.HostFit) openapi.PreviewHost {
	m := h.Memory

	return openapi.PreviewHost{
		ID: h.ID, Name: h.Name, AtOnce: h.AtOnce, Binds: h.Binds, Why: h.Why, AtOnceNow: h.AtOnceNow, SpillBytes: h.SpillBytes,
		MemoryBytes: m.TotalBytes, MemoryHeadroomBytes: m.HeadroomBytes, MemoryUsedByOthersBytes: m.OthersBytes,
		MemoryReservedBytes: m.ReservedBytes, MemorySweepBytes: m.SweepBytes, Devices: all(h.Devices, toPreviewDevice),
	}
}

func toPreviewDevice(d preview.DeviceFill) openapi.PreviewDevice {
	m := d.Memory

	return openapi.PreviewDevice{
		ID: d.ID, Model: d.Model, Simulated: d.Simulated, Problem: d.Problem,
		MemoryBytes: m.TotalBytes, MemoryHeadroomBytes: m.HeadroomBytes, MemoryUsedByOthersBytes: m.OthersBytes,
		MemoryReservedBytes: m.ReservedBytes, MemorySweepBytes: m.SweepBytes,
	}
}
