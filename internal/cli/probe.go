package cli

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

func (r *remote) probes(ctx context.Context, limit int) ([]client.Probe, error) {
	return pages(limit, func(cursor string, limit int) ([]client.Probe, string, error) {
		page, err := answer[client.ProbeList](r.ListProbes(ctx, &client.ListProbesParams{Cursor: some(cursor), Limit: some(limit)}))

		return page.Data, page.NextCursor, err
	})
}

func (o *options) listProbesCommand() *cobra.Command {
	var limit int

	cmd := o.verb("list", "List what was measured of each shape", cobra.NoArgs, func(cmd *cobra.Command, to *remote, _ []string) error {
		return show(o, cmd, o.probeTable)(to.probes(cmd.Context(), limit))
	})
	cmd.Flags().IntVar(&limit, "limit", 0, "how many at most; 0 = all")

	return cmd
}

func (o *options) probeTable(probes []client.Probe) table {
	t := table{header: []string{"shape", "values", "on", "peak", "gpu peak", "reserves", "cores used", "takes", "runs", "how", "measured"}}

	for _, p := range probes {
		for _, f := range p.Footprints {
			t.add(berth.ShortKey(p.ShapeKey), p.Shape.Values.Text(" "), f.DeviceClass, bytesText(f.MemoryPeakBytes), bytesText(f.DevicePeakBytes),
				bytesText(f.ReservedBytes), coresUsed(f.CPUMilli), span(seconds(f.DurationSeconds)), strconv.Itoa(f.Samples), f.Source, o.ago(f.MeasuredAt))
		}
	}

	return t
}

func (o *options) getProbeCommand() *cobra.Command {
	return o.verb("get SHAPE", "Show what was measured of one shape", cobra.ExactArgs(1),
		func(cmd *cobra.Command, to *remote, args []string) error {
			return show(o, cmd, o.probeDetails)(answer[client.Probe](to.GetProbe(cmd.Context(), args[0])))
		})
}

func (o *options) probeDetails(p client.Probe) table {
	var t table

	t.add("shape", p.ShapeKey)
	t.add("image", p.Shape.ImageDigest)
	t.add("command", strings.Join(p.Shape.Command, " "))
	t.add("values", p.Shape.Values.Text(" "))

	for _, f := range p.Footprints {
		o.addFootprint(&t, f)
	}

	return t
}

func (o *options) addFootprint(t *table, f client.Footprint) {
	t.add("on", f.DeviceClass)
	t.add("peak", bytesText(f.MemoryPeakBytes))

	if f.MemoryFloorBytes > 0 {
		t.add("too small", bytesText(f.MemoryFloorBytes)+" ran out of memory")
	}

	if f.DevicePeakBytes > 0 {
		t.add("gpu peak", bytesText(f.DevicePeakBytes))
	}

	if text := phasesText(f.DevicePhases); text != "" {
		t.add("by phase", text)
	}

	if f.StepSeconds > 0 {
		t.add("a step", stepText(f.StepSeconds))
	}

	if a := f.DeviceActivity; a != (client.DeviceActivity{}) {
		t.add("gpu busy", activityText(a))
	}

	t.add("reserves", bytesText(f.ReservedBytes))
	t.add("cores used", coresUsed(f.CPUMilli))
	t.add("takes", span(seconds(f.DurationSeconds)))
	t.add("measured", fmt.Sprintf("%s, %s, %s", plural(f.Samples, "run", "runs"), f.Source, o.ago(f.MeasuredAt)))
	addDiagnosis(t, f.Diagnosis)
}

// phasesText is a program's GPU memory in each phase; empty = not known.
func phasesText(p *client.DevicePhases) string {
	if p == nil {
		return ""
	}

	var parts []string

	for _, phase := range []struct {
		name  string
		bytes int64
	}{{"at its start", p.StartBytes}, {"in training", p.TrainingBytes}, {"in validation", p.ValidationBytes}} {
		if phase.bytes > 0 {
			parts = append(parts, bytesText(phase.bytes)+" "+phase.name)
		}
	}

	return strings.Join(parts, ", ")
}

// stepText is the mean of a training step.
func stepText(seconds float64) string {
	return number(math.Round(seconds*1e5)/1e2) + " ms"
}

// addDiagnosis adds the bottleneck of a program, and what to do: each piece of
// advice with its measurement before it.
func addDiagnosis(t *table, d *client.Diagnosis) {
	if d == nil {
		return
	}

	if d.Why != "" {
		t.add("limited by", strings.TrimPrefix(labelText(d.Label)+": "+d.Why, ": "))
	}

	for _, piece := range d.Advice {
		t.add("advice", piece.Evidence+". "+sentence(piece.Do))
	}
}

// labelText is the bottleneck of a program, in words; empty = not known.
func labelText(label string) string {
	words := map[string]string{
		"compute_bound": "its SMs (compute-bound)", "memory_bound": "its GPU's bandwidth (memory-bound)",
		"input_bound": "its input (input-bound)", "latency_bound": "launching kernels (latency-bound)",
	}

	return cmp.Or(words[label], label)
}

// sentence begins with a capital letter, where it begins with a letter.
func sentence(text string) string {
	return strings.ToUpper(text[:min(len(text), 1)]) + text[min(len(text), 1):]
}

// activityText is how busy a program keeps a GPU.
func activityText(a client.DeviceActivity) string {
	return fmt.Sprintf("%s of its SMs, %s of its memory's bandwidth, %s of its tensor cores", milliText(a.SmMilli), milliText(a.DramMilli), milliText(a.TensorMilli))
}

// milliText is thousandths as a percentage.
func milliText(milli int64) string { return strconv.FormatFloat(float64(milli)/10, 'f', -1, 64) + " %" }

func (o *options) forgetProbeCommand() *cobra.Command {
	return o.verb("forget SHAPE", "Forget what was measured, so that the shape is probed anew", cobra.ExactArgs(1),
		func(cmd *cobra.Command, to *remote, args []string) error {
			return confirm(cmd, "forgotten: the next trial of shape %s measures it anew", berth.ShortKey(args[0]))(to.ForgetProbe(cmd.Context(), args[0]))
		})
}
