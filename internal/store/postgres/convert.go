package postgres

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

func toSweep(row dbsqlc.Sweep) (berth.Sweep, error) {
	sweep := berth.Sweep{
		ID:          row.ID,
		Name:        row.Name,
		ImageDigest: row.ImageDigest,
		State:       berth.SweepState(row.State),
		Reason:      row.Reason,
		MaxParallel: int(row.MaxParallel),
		CreatedBy:   row.CreatedBy,
		CreatedAt:   row.CreatedAt.UTC(),
		StartedAt:   row.StartedAt,
		FinishedAt:  row.FinishedAt,
		Counts:      berth.Counts{Planned: int(row.Planned)},
		RunID:       row.RunID,
	}

	err := decode(row.Spec, &sweep.Spec, "spec of sweep "+row.ID)

	return sweep, err
}

func toTrial(row dbsqlc.Trial) (berth.Trial, error) {
	trial := berth.Trial{
		ID:         row.ID,
		SweepID:    row.SweepID,
		Number:     int(row.Number),
		ShapeKey:   row.ShapeKey,
		State:      berth.TrialState(row.State),
		Kind:       berth.FailureKind(row.FailureKind),
		Message:    row.Message,
		Value:      row.Value,
		CreatedAt:  row.CreatedAt.UTC(),
		StartedAt:  row.StartedAt,
		FinishedAt: row.FinishedAt,
	}

	err := decode(row.Params, &trial.Params, "values of trial "+row.ID)

	return trial, err
}

func toAttempt(row dbsqlc.Attempt) berth.Attempt {
	a := berth.Attempt{
		ID:          row.ID,
		TrialID:     row.TrialID,
		Number:      int(row.Number),
		Stage:       row.Stage,
		Purpose:     berth.Purpose(row.Purpose),
		State:       berth.AttemptState(row.State),
		HostID:      row.HostID,
		DeviceID:    deref(row.DeviceID),
		Class:       berth.DeviceClass(row.DeviceClass),
		Token:       row.Token,
		ContainerID: row.ContainerID,
		Kind:        berth.FailureKind(row.FailureKind),
		Message:     row.Message,
		Value:       row.Value,

		MetricSource: row.MetricSource, Resumed: row.Resumed,

		Demand: berth.Demand{
			MemoryBytes: row.MemoryBytes,
			CPUMilli:    row.CpuMilli,
			DeviceBytes: row.DeviceBytes,
			Contexts:    int(row.Contexts),
			Exclusive:   row.Exclusive,

			ExclusiveDevice: row.ExclusiveDevice,
			SpillBytes:      row.SpillBytes,
		},
		Usage: berth.Usage{
			MemoryPeakBytes:    row.MemoryPeakBytes,
			DevicePeakBytes:    row.DevicePeakBytes,
			FrameworkPeakBytes: row.FrameworkPeakBytes,
			DevicePhases:       berth.Phases{StartBytes: row.StartPeakBytes, TrainingBytes: row.TrainingPeakBytes, ValidationBytes: row.ValidationPeakBytes},
			Steps:              row.Steps,
			StepTime:           berth.Duration(row.StepNs),
			CPU:                berth.Duration(row.CpuNs),
			CPUPeriods:         row.CpuPeriods,
			CPUThrottled:       row.CpuThrottled,
			Wall:               berth.Duration(row.WallNs),
			Samples:            int(row.Samples),
			OOMKills:           int(row.OomKills),
			Unseen:             berth.Duration(row.UnseenNs),
			DeviceActivity:     toActivity(row.DeviceSmMilli, row.DeviceDramMilli, row.DeviceTensorMilli),
			DeviceActive:       berth.Duration(row.DeviceActiveNs),
			DeviceUnknown:      berth.Duration(row.DeviceUnknownNs),
		},
		PlacedAt:   row.PlacedAt.UTC(),
		StartedAt:  row.StartedAt,
		FinishedAt: row.FinishedAt,

		OutputsRemovedAt:  row.OutputsRemovedAt,
		OutputsRemovedWhy: row.OutputsRemovedWhy,

		Datasets: row.Datasets,
	}

	if row.ExitCode != nil {
		code := int(*row.ExitCode)
		a.ExitCode = &code
	}

	return a
}

func toActivity(sm, dram, tensor int32) berth.DeviceActivity {
	return berth.DeviceActivity{SMMilli: int64(sm), DRAMMilli: int64(dram), TensorMilli: int64(tensor)}
}

func toFootprint(row dbsqlc.ClassFootprint) berth.Footprint {
	return berth.Footprint{
		ShapeKey:         row.ShapeKey,
		Class:            berth.DeviceClass(row.DeviceClass),
		Source:           berth.FootprintSource(row.Source),
		Samples:          int(row.Samples),
		MemoryPeakBytes:  row.MemoryPeakBytes,
		MemoryFloorBytes: row.MemoryFloorBytes,
		FloorPassed:      int(row.FloorPassed),
		DevicePeakBytes:  row.DevicePeakBytes,
		DeviceFloorBytes: row.DeviceFloorBytes,
		DevicePassed:     int(row.DevicePassed),
		DeviceActivity:   toActivity(row.DeviceSmMilli, row.DeviceDramMilli, row.DeviceTensorMilli),
		CPUMilli:         row.CpuMilli,
		Duration:         berth.Duration(row.DurationNs),
		MeasuredAt:       row.MeasuredAt.UTC(),
	}
}

// toFootprints groups footprints by their shape's key.
func toFootprints(rows []dbsqlc.ClassFootprint) map[string]berth.Footprints {
	known := make(map[string]berth.Footprints)

	for _, row := range rows {
		f := toFootprint(row)
		if known[f.ShapeKey] == nil {
			known[f.ShapeKey] = berth.Footprints{}
		}

		known[f.ShapeKey][f.Class] = f
	}

	return known
}

func toHost(row dbsqlc.ListHostsRow) berth.Host {
	host := berth.Host{
		ID:                  row.ID,
		Name:                row.Name,
		BootID:              row.BootID,
		MachineID:           row.MachineID,
		DataDir:             row.DataDir,
		State:               berth.HostState(row.State),
		CPUMilli:            cmp.Or(deref(row.CpuMilliTarget), row.CpuMilli),
		CPUMilliReserved:    row.CpuMilliReserved,
		MemoryBytes:         cmp.Or(deref(row.MemoryBytesTarget), row.MemoryBytes),
		MemoryHeadroomBytes: row.MemoryHeadroomBytes,
		DiskFreeBytes:       row.DiskFreeBytes,
		DiskHeadroomBytes:   row.DiskHeadroomBytes,
		DiskBytes:           row.DiskBytes,
		DiskGrowthBytes:     row.DiskGrowthBytes,
		OutputBytes:         row.OutputBytes,
		OutputsProblem:      row.OutputsProblem,
		MemoryReservedBytes: row.MemoryReservedBytes,
		MemoryFreeBytes:     row.MemoryFreeBytes,
		MaxAttempts:         int(cmp.Or(deref(row.MaxAttemptsTarget), row.MaxAttempts)),
		Attempts:            int(row.Attempts),
		Exclusive:           row.Exclusive,
		LastSeenAt:          row.LastSeenAt.UTC(),
		Late:                row.Late,
		Problem:             row.Problem,
		Datasets:            row.Datasets,
		SecretKeys:          row.SecretKeys,
		StoresCheckpoints:   row.StoresCheckpoints,
	}

	host.FailedStarts, host.TestDue = len(row.FailedTrials), row.TestDue

	if row.CordonedAt != nil {
		host.CordonedAt, host.CordonReason = new(row.CordonedAt.UTC()), row.CordonReason

		if len(row.FailedSweeps) == 1 {
			host.CordonSweep = row.FailedSweeps[0]
		}
	}

	switch {
	case row.Lost:
		host.State = berth.HostLost
	case row.Problem != "":
		host.State = berth.HostUnready
	}

	return host
}

func toFormerHost(row dbsqlc.ListFormerHostsRow) berth.Host {
	host := berth.Host{
		ID: row.ID, Name: row.Name, State: berth.HostFormer, CPUMilli: row.CpuMilli, MemoryBytes: row.MemoryBytes,
		FormerUntil: row.Until.UTC(), Problem: "its worker came back with less memory or fewer cores",
	}

	if row.Removed {
		host.Problem = "it was removed"
	}

	return host
}

// toReasons decodes stored reasons. Unreadable reasons count as none: they only
// explain, and the placer writes them again.
func toReasons(data json.RawMessage) []berth.Rejection {
	var reasons []berth.Rejection
	if err := decode(data, &reasons, "reasons"); err != nil {
		return nil
	}

	return reasons
}

func encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil { // our own types always marshal; a value that does not is a bug
		panic(fmt.Sprintf("postgres: encoding %T: %v", v, err))
	}

	return data
}

// encodeOptional is encode, with NULL for nil.
func encodeOptional[T any](v *T) json.RawMessage {
	if v == nil {
		return nil
	}

	return encode(v)
}

func decode(data json.RawMessage, into any, what string) error {
	if err := json.Unmarshal(data, into); err != nil {
		return berth.Errorf(berth.KindInternal, "decoding %s: %w", what, err)
	}

	return nil
}

// deref is the value that v points to, or zero.
func deref[T any](v *T) T {
	var zero T
	if v == nil {
		return zero
	}

	return *v
}

func refOrNil(s string) *string {
	if s == "" {
		return nil
	}

	return &s
}

// milliOf is an activity as the database keeps it.
func milliOf(milli int64) int32 { return int32(min(max(milli, 0), berth.FullActivity)) }

func int32Of(n int) int32 { return int32(n) } //nolint:gosec // G115: counts and limits far below 2^31

// collect converts the rows of a query; doing is the gerund of its error's text.
func collect[R, T any](rows []R, err error, doing string, convert func(R) (T, error)) ([]T, error) {
	if err != nil {
		return nil, translate(err, doing)
	}

	return convertAll(rows, convert)
}

func convertAll[R, T any](rows []R, convert func(R) (T, error)) ([]T, error) {
	out := make([]T, 0, len(rows))

	for _, row := range rows {
		v, err := convert(row)
		if err != nil {
			return nil, err
		}

		out = append(out, v)
	}

	return out, nil
}
