package postgres

import (
	"context"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// PutMetrics stores points; one with the same name and step is replaced.
// Errors: fenced.
func (s *Store) PutMetrics(ctx context.Context, attemptID string, token int64, points []berth.MetricPoint) error {
	if len(points) == 0 {
		return nil
	}

	p := &dbsqlc.UpsertMetricsParams{AttemptID: attemptID, Token: token}

	type key struct {
		name string
		step int64
	}

	seen := make(map[key]int, len(points))

	for _, point := range points {
		at := key{point.Name, point.Step}
		if i, ok := seen[at]; ok { // one statement must not touch a row twice
			p.MetricValues[i], p.Statuses[i], p.Finals[i], p.Ats[i] = point.Value, string(point.Status), point.Final, point.At

			continue
		}

		seen[at] = len(p.Names)
		p.Names = append(p.Names, point.Name)
		p.Steps = append(p.Steps, point.Step)
		p.MetricValues = append(p.MetricValues, point.Value)
		p.Statuses = append(p.Statuses, string(point.Status))
		p.Finals = append(p.Finals, point.Final)
		p.Ats = append(p.Ats, point.At)
	}

	rows, err := s.q.UpsertMetrics(ctx, s.pool, p)
	if err != nil {
		return translate(err, "storing metrics of attempt "+attemptID)
	}

	return fencedError(rows, nil, attemptID, token)
}

// DropMetrics removes all points of these names. Errors: fenced.
func (s *Store) DropMetrics(ctx context.Context, attemptID string, token int64, names []string) error {
	rows, err := s.q.DropMetrics(ctx, s.pool, &dbsqlc.DropMetricsParams{AttemptID: attemptID, Token: token, Names: names})

	return fencedError(rows, err, attemptID, token)
}

// ListMetrics returns points by name and step. An empty name means all.
func (s *Store) ListMetrics(ctx context.Context, attemptID, name string, limit int) ([]berth.MetricPoint, error) {
	rows, err := s.q.ListMetrics(ctx, s.pool, &dbsqlc.ListMetricsParams{AttemptID: attemptID, OnlyName: name, MaxRows: limit})

	return collect(rows, err, "listing metrics of attempt "+attemptID, func(row dbsqlc.ListMetricsRow) berth.MetricPoint { return berth.MetricPoint(row) })
}

// PutLog stores a piece. Of two at one offset the longer stays: another run of
// the worker cuts the same log elsewhere. Errors: fenced.
func (s *Store) PutLog(ctx context.Context, attemptID string, token int64, piece berth.LogPiece) error {
	writers, err := s.q.InsertLogChunk(ctx, s.pool, &dbsqlc.InsertLogChunkParams{
		AttemptID: attemptID, Token: token, ChunkOffset: piece.Offset, Stream: piece.Stream, At: piece.At, Data: piece.Data,
	})
	if err != nil {
		return translate(err, "storing log of attempt "+attemptID)
	}

	return fencedError(writers, nil, attemptID, token)
}

// ReadLog returns at most limit pieces that reach beyond the offset.
func (s *Store) ReadLog(ctx context.Context, attemptID string, offset int64, limit int) ([]berth.LogPiece, error) {
	rows, err := s.q.ReadLog(ctx, s.pool, &dbsqlc.ReadLogParams{AttemptID: attemptID, FromOffset: offset, MaxRows: limit})

	return collect(rows, err, "reading log of attempt "+attemptID, func(row dbsqlc.ReadLogRow) berth.LogPiece { return berth.LogPiece(row) })
}

// ListFootprints returns up to limit measured shapes, by key, after the given
// one.
func (s *Store) ListFootprints(ctx context.Context, after string, limit int) ([]berth.ProbedShape, error) {
	rows, err := s.q.ListFootprints(ctx, s.pool, after, limit)

	return toProbedShapes(rows), translate(err, "listing footprints")
}

// FindFootprint returns the one measured shape whose key starts with prefix.
// Errors: not_found; conflict when several do.
func (s *Store) FindFootprint(ctx context.Context, prefix string) (berth.ProbedShape, error) {
	rows, err := s.q.FindFootprints(ctx, s.pool, prefix)
	if err != nil {
		return berth.ProbedShape{}, translate(err, "finding footprint")
	}

	list := convertAll(rows, func(row dbsqlc.FindFootprintsRow) dbsqlc.ListFootprintsRow { return dbsqlc.ListFootprintsRow(row) })

	return onlyOne(toProbedShapes(list), "measured shapes have a key", prefix)
}

// onlyOne is the only thing found by a prefix. Errors: not_found; conflict.
func onlyOne[T any](found []T, what, prefix string) (one T, err error) {
	switch len(found) {
	case 0:
		return one, berth.Errorf(berth.KindNotFound, "no %s that starts with %q", what, prefix)
	case 1:
		return found[0], nil
	default:
		return one, berth.Errorf(berth.KindConflict, "several %s that starts with %q; give more of it", what, prefix)
	}
}

// toProbedShapes groups the classes of each shape, which follow one another.
func toProbedShapes(rows []dbsqlc.ListFootprintsRow) []berth.ProbedShape {
	var shapes []berth.ProbedShape

	for _, row := range rows {
		if len(shapes) == 0 || shapes[len(shapes)-1].Key != row.ClassFootprint.ShapeKey {
			shapes = append(shapes, berth.ProbedShape{Key: row.ClassFootprint.ShapeKey, Shape: row.Shape})
		}

		last := &shapes[len(shapes)-1]
		last.Footprints = append(last.Footprints, toFootprint(row.ClassFootprint))
	}

	return shapes
}

// recentAttempts is how many of a shape's newest attempts on a class count as recent.
const recentAttempts = 20

// recentRows is how many of a shape's newest attempts are read for these: a class where none of
// them ran has no recent usage.
const recentRows = 500

// RecentUsage returns the usage of a shape's newest attempts beyond its footprints, for
// each class of GPU where one ended well.
func (s *Store) RecentUsage(ctx context.Context, shapeKey string) ([]berth.RecentUsage, error) {
	rows, err := s.q.RecentUsage(ctx, s.pool, &dbsqlc.RecentUsageParams{ShapeKey: shapeKey, Newest: recentAttempts, MaxRows: recentRows})
	if err != nil {
		return nil, translate(err, "reading the newest attempts of shape "+shapeKey)
	}

	out := make([]berth.RecentUsage, len(rows))

	for i, row := range rows {
		out[i] = berth.RecentUsage{
			Class: row.DeviceClass, FrameworkPeakBytes: row.FrameworkPeakBytes, StepTime: berth.Duration(row.StepNs),
			Phases: berth.Phases{StartBytes: row.StartPeakBytes, TrainingBytes: row.TrainingPeakBytes, ValidationBytes: row.ValidationPeakBytes},
		}

		if row.WallNs > 0 {
			out[i].HeldMilli = max(int64(float64(row.HeldNs)/float64(row.WallNs)*1000), 1)
		}
	}

	return out, nil
}

// ForgetFootprint deletes a shape's footprint, so that the shape is probed
// again. Errors: not_found.
func (s *Store) ForgetFootprint(ctx context.Context, shapeKey string) error {
	rows, err := s.q.DeleteFootprints(ctx, s.pool, shapeKey)

	return must(rows, err, "forgetting footprint", "no footprint "+shapeKey)
}
