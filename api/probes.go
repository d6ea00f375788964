package api

import (
	"context"
	"regexp"
	"slices"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/control/advice"
)

// keyPrefix matches a prefix of a shape's key.
var keyPrefix = regexp.MustCompile(`^[0-9a-f]{1,64}$`)

// ListProbes is GET /probes.
func (h *handlers) ListProbes(ctx context.Context, r openapi.ListProbesRequestObject) (openapi.ListProbesResponseObject, error) {
	probes, next, err := pageOf(h.Server, r.Params.Cursor, r.Params.Limit, func(after string, limit int) ([]berth.ProbedShape, error) {
		return h.deps.Store.ListFootprints(ctx, after, limit)
	}, func(p berth.ProbedShape) string { return p.Key })

	return openapi.ListProbes200JSONResponse{Data: all(probes, toProbe), NextCursor: next}, err
}

// GetProbe is GET /probes/{id}.
func (h *handlers) GetProbe(ctx context.Context, r openapi.GetProbeRequestObject) (openapi.GetProbeResponseObject, error) {
	probe, err := h.probe(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	recent, err := h.deps.Store.RecentUsage(ctx, probe.Key)
	if err != nil {
		return nil, err
	}

	hosts, err := h.deps.Store.ListHosts(ctx)
	if err != nil {
		return nil, err
	}

	out := toProbe(probe)
	for i, f := range probe.Footprints {
		latest := recentOf(recent, f.Class)
		out.Footprints[i].Diagnosis = diagnosis(probe.Shape, f, latest, hosts)
		out.Footprints[i].DevicePhases, out.Footprints[i].StepSeconds = toPhases(latest.Phases), seconds(latest.StepTime)
	}

	return openapi.GetProbe200JSONResponse(out), nil
}

// diagnosis returns the bottleneck of the program by its footprint; nil = none.
func diagnosis(shape berth.Shape, f berth.Footprint, recent berth.RecentUsage, hosts []berth.Host) *openapi.Diagnosis {
	m := advice.Measured{Footprint: f, CardBytes: cardBytes(f.Class, hosts), CapMilli: 1000 * berth.Threads(shape.CPUMilli), Recent: recent}

	d := advice.Of(m)
	if d.Why == "" && len(d.Advice) == 0 {
		return nil
	}

	out := &openapi.Diagnosis{Label: string(d.Label), Why: d.Why, Advice: []openapi.AdvicePiece{}}
	for _, p := range d.Advice {
		out.Advice = append(out.Advice, openapi.AdvicePiece{About: p.About, Evidence: p.Evidence, Do: p.Do})
	}

	return out
}

// recentOf returns the recent usage on a class; zero = none.
func recentOf(recent []berth.RecentUsage, class berth.DeviceClass) berth.RecentUsage {
	if i := slices.IndexFunc(recent, func(r berth.RecentUsage) bool { return r.Class == class }); i >= 0 {
		return recent[i]
	}

	return berth.RecentUsage{}
}

// cardBytes is the memory of the largest GPU of a class; 0 = no host has one now.
func cardBytes(class berth.DeviceClass, hosts []berth.Host) (largest int64) {
	for _, h := range hosts {
		for _, d := range h.Devices {
			if slices.ContainsFunc(d.Modes(), func(mode berth.SharingMode) bool { return d.ClassBy(mode) == class }) {
				largest = max(largest, d.MemoryBytes)
			}
		}
	}

	return largest
}

// ForgetProbe is DELETE /probes/{id}.
func (h *handlers) ForgetProbe(ctx context.Context, r openapi.ForgetProbeRequestObject) (openapi.ForgetProbeResponseObject, error) {
	probe, err := h.probe(ctx, r.ID)
	if err != nil {
		return nil, err
	}

	return openapi.ForgetProbe204Response{}, h.deps.Store.ForgetFootprint(ctx, probe.Key)
}

func (h *handlers) probe(ctx context.Context, key string) (berth.ProbedShape, error) {
	if !keyPrefix.MatchString(key) {
		return berth.ProbedShape{}, berth.Errorf(berth.KindNotFound, "no shape with a key that starts with %q was measured", key)
	}

	return h.deps.Store.FindFootprint(ctx, key)
}
