package postgres

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

func toSweep(row dbsqlc.Sweep) berth.Sweep {
	return berth.Sweep{
		ID:          row.ID,
		Name:        row.Name,
		Spec:        row.Spec,
		ImageDigest: row.ImageDigest,
		State:       row.State,
		Reason:      row.Reason,
		Note:        row.Note,
		MaxParallel: row.MaxParallel,
		CreatedBy:   row.CreatedBy,
		CreatedAt:   row.CreatedAt,
		StartedAt:   row.StartedAt,
		FinishedAt:  row.FinishedAt,
		Counts:      berth.Counts{Planned: row.Planned},
		RunID:       row.RunID,
	}
}

func toTrial(row dbsqlc.Trial) berth.Trial {
	return berth.Trial{
		ID:         row.ID,
		SweepID:    row.SweepID,
		Number:     row.Number,
		Params:     row.Params,
		ShapeKey:   row.ShapeKey,
		State:      row.State,
		Kind:       row.FailureKind,
		Message:    row.Message,
		Note:       row.Note,
		Origin:     row.Origin,
		Value:      row.Value,
		Results:    row.Results,
		CreatedAt:  row.CreatedAt,
		StartedAt:  row.StartedAt,
		FinishedAt: row.FinishedAt,
	}
}

func toAttempt(row dbsqlc.Attempt) berth.Attempt {
	return berth.Attempt{
		ID:          row.ID,
		TrialID:     row.TrialID,
		Number:      row.Number,
		Stage:       row.Stage,
		Purpose:     row.Purpose,
		State:       row.State,
		HostID:      row.HostID,
		DeviceID:    deref(row.DeviceID),
		ShapeKey:    row.ShapeKey,
		Class:       row.DeviceClass,
		Token:       row.Token,
		ContainerID: row.ContainerID,
		ExitCode:    row.ExitCode,
		Kind:        row.FailureKind,
		Message:     row.Message,
		Value:       row.Value,
		Results:     row.Results,

		MetricSource: row.MetricSource, Resumed: row.Resumed,

		Demand: berth.Demand{
			MemoryBytes: row.MemoryBytes,
			CPUMilli:    row.CPUMilli,
			DeviceBytes: row.DeviceBytes,
			Contexts:    row.Contexts,
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
			CPU:                berth.Duration(row.CPUNs),
			CPUPeriods:         row.CPUPeriods,
			CPUThrottled:       row.CPUThrottled,
			Wall:               berth.Duration(row.WallNs),
			Samples:            row.Samples,
			OOMKills:           row.OOMKills,
			Unseen:             berth.Duration(row.UnseenNs),
			DeviceActivity:     toActivity(row.DeviceSMMilli, row.DeviceDRAMMilli, row.DeviceTensorMilli),
			DeviceActive:       berth.Duration(row.DeviceActiveNs),
			DeviceUnknown:      berth.Duration(row.DeviceUnknownNs),
		},
		PlacedAt:   row.PlacedAt,
		StartedAt:  row.StartedAt,
		FinishedAt: row.FinishedAt,

		OutputsRemovedAt:  row.OutputsRemovedAt,
		OutputsRemovedWhy: row.OutputsRemovedWhy,

		Datasets: row.Datasets,
	}
}

func toActivity(sm, dram, tensor int64) berth.DeviceActivity {
	return berth.DeviceActivity{SMMilli: sm, DRAMMilli: dram, TensorMilli: tensor}
}

func toFootprint(row dbsqlc.ClassFootprint) berth.Footprint {
	return berth.Footprint{
		ShapeKey:         row.ShapeKey,
		Class:            row.DeviceClass,
		Source:           row.Source,
		Samples:          row.Samples,
		MemoryPeakBytes:  row.MemoryPeakBytes,
		MemoryFloorBytes: row.MemoryFloorBytes,
		FloorPassed:      row.FloorPassed,
		DevicePeakBytes:  row.DevicePeakBytes,
		DeviceFloorBytes: row.DeviceFloorBytes,
		DevicePassed:     row.DevicePassed,
		DeviceActivity:   toActivity(row.DeviceSMMilli, row.DeviceDRAMMilli, row.DeviceTensorMilli),
		CPUMilli:         row.CPUMilli,
		Duration:         berth.Duration(row.DurationNs),
		MeasuredAt:       row.MeasuredAt,
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
		State:               row.State,
		CPUMilli:            cmp.Or(deref(row.CPUMilliTarget), row.CPUMilli),
		CPUMilliReserved:    row.CPUMilliReserved,
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
		MaxAttempts:         cmp.Or(deref(row.MaxAttemptsTarget), row.MaxAttempts),
		Attempts:            row.Attempts,
		Exclusive:           row.Exclusive,
		LastSeenAt:          row.LastSeenAt,
		Late:                row.Late,
		Problem:             row.Problem,
		Datasets:            row.Datasets,
		SecretKeys:          row.SecretKeys,
		StoresCheckpoints:   row.StoresCheckpoints,
	}

	host.FailedStarts, host.TestDue = len(row.FailedTrials), row.TestDue

	if row.CordonedAt != nil {
		host.CordonedAt, host.CordonReason = row.CordonedAt, row.CordonReason

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
		ID: row.ID, Name: row.Name, State: berth.HostFormer, CPUMilli: row.CPUMilli, MemoryBytes: row.MemoryBytes,
		FormerUntil: row.Until, Problem: "its worker came back with less memory or fewer cores",
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
func milliOf(milli int64) int64 { return min(max(milli, 0), berth.FullActivity) }

// collect converts the rows of a query; doing is the gerund of its error's text.
func collect[R, T any](rows []R, err error, doing string, convert func(R) T) ([]T, error) {
	if err != nil {
		return nil, translate(err, doing)
	}

	return convertAll(rows, convert), nil
}

func convertAll[R, T any](rows []R, convert func(R) T) []T {
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = convert(row)
	}

	return out
}
