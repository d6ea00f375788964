package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/memory"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// predictedShapes of a family are looked at, the newest: twice as many as a sweep has open.
const predictedShapes = 2 * berth.MaxOpenTrials

// predictFamilies predicts in the locked family of a shape; none where nobody stored the shape.
func (s *Store) predictFamilies(ctx context.Context, tx pgx.Tx, locked []dbsqlc.LockFamilyRow) error {
	for _, family := range locked {
		if err := s.predict(ctx, tx, family.Family); err != nil {
			return err
		}
	}

	return nil
}

// predict stores what unmeasured shapes of open trials need, as measured ones of their family
// say. A measured class of a shape, or one that ran out of memory, stays as it is. The caller
// has locked the family.
func (s *Store) predict(ctx context.Context, tx pgx.Tx, family string) error {
	open, err := s.q.OpenOfFamily(ctx, tx, family, predictedShapes)
	if err != nil || len(open) == 0 {
		return err
	}

	keys := make([]string, len(open))
	for i, o := range open {
		keys[i] = o.Key
	}

	known, err := s.footprintsOf(ctx, tx, keys)
	if err != nil {
		return err
	}

	open = slices.DeleteFunc(open, func(o dbsqlc.OpenOfFamilyRow) bool { return len(known[o.Key]) > 0 && !memory.Predicted(known[o.Key]) })
	if len(open) == 0 {
		return nil
	}

	families, err := s.families(ctx, tx, family)
	if err != nil {
		return err
	}

	for _, o := range open {
		_, numbers := o.Shape.Family()

		for class, measured := range families {
			f, ok := measured.Predict(o.Key, numbers)
			if ok && !alike(f, known[o.Key][class]) {
				if err := s.storeFootprint(ctx, tx, f, class); err != nil {
					return err
				}
			}
		}
	}

	return nil
}

// families are the measured shapes of a family, by class of device.
func (s *Store) families(ctx context.Context, tx pgx.Tx, family string) (map[berth.DeviceClass]*memory.Family, error) {
	rows, err := s.q.MeasuredOfFamily(ctx, tx, family, memory.MostSiblings)
	if err != nil {
		return nil, err
	}

	siblings := make(map[berth.DeviceClass][]memory.Sibling)

	for _, row := range rows {
		if _, numbers := row.Shape.Family(); len(numbers) > 0 {
			f := toFootprint(row.ClassFootprint)
			siblings[f.Class] = append(siblings[f.Class], memory.Sibling{At: numbers, Footprint: f})
		}
	}

	families := make(map[berth.DeviceClass]*memory.Family, len(siblings))
	for class, of := range siblings {
		families[class] = memory.NewFamily(of)
	}

	return families, nil
}

// alike reports whether a prediction says nothing new: its peaks are within 1 % of the stored
// ones.
func alike(f, stored berth.Footprint) bool {
	near := func(a, b int64) bool { return max(a, b)-min(a, b) <= max(a, b)/100 }

	return stored.Source == berth.FootprintPredicted && near(f.MemoryPeakBytes, stored.MemoryPeakBytes) && near(f.DevicePeakBytes, stored.DevicePeakBytes)
}

// knownOrPredicted are the footprints of a shape, predicted ones if nothing is known of it.
func (s *Store) knownOrPredicted(ctx context.Context, key string) (berth.Footprints, error) {
	known, err := s.Footprints(ctx, []string{key})
	if err != nil || len(known[key]) > 0 {
		return known[key], err
	}

	err = s.inTx(ctx, "predicting the footprint of "+key, func(tx pgx.Tx) error {
		locked, err := s.q.LockFamily(ctx, tx, key)
		if err != nil {
			return err
		}

		if err := s.predictFamilies(ctx, tx, locked); err != nil {
			return err
		}

		known, err = s.footprintsOf(ctx, tx, []string{key})

		return err
	})

	return known[key], err
}
