package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// addPaces adds to a queue the input for advising its GPUs; nothing where no host
// has one.
func (s *Store) addPaces(ctx context.Context, db dbsqlc.DBTX, queue *berth.Queue) error {
	if !slices.ContainsFunc(queue.Hosts, func(h berth.Host) bool { return len(h.Devices) > 0 }) {
		return nil
	}

	keys := make(map[string]bool)
	for _, w := range queue.Waiting {
		keys[w.ShapeKey] = true
	}

	if err := s.addAhead(ctx, db, queue.Sweeps); err != nil {
		return err
	}

	for _, use := range queue.Sweeps {
		if use.Template != "" { // else the sweep is gone
			keys[use.Template], keys[berth.HeavyTemplate(use.Template)] = true, true
		}
	}

	loaded, err := s.q.LoadDevices(ctx, db, berth.MeasuresWithin)
	if err != nil {
		return err
	}

	queue.OnDevices, queue.OnGPUs = make(map[string][]berth.Loaded), make(map[string]bool)

	for _, row := range loaded {
		queue.OnDevices[row.DeviceID] = append(queue.OnDevices[row.DeviceID], berth.Loaded{ShapeKey: row.ShapeKey, Template: row.Template})
		young, there := queue.OnGPUs[row.ShapeKey]
		queue.OnGPUs[row.ShapeKey] = row.Young && (young || !there)
		keys[row.ShapeKey], keys[row.Template], keys[berth.HeavyTemplate(row.Template)] = true, true, true
	}

	queue.Paces, err = s.readPaces(ctx, db, slices.Collect(maps.Keys(keys)))

	return err
}

// addAhead adds the remaining work of sweeps and its shapes.
func (s *Store) addAhead(ctx context.Context, db dbsqlc.DBTX, sweeps map[string]berth.SweepUse) error {
	ahead, err := s.q.SweepsAhead(ctx, db, slices.Collect(maps.Keys(sweeps)))
	if err != nil {
		return err
	}

	for _, row := range ahead {
		use := sweeps[row.ID]
		use.Left, use.Template = row.TrialsLeft, row.Template

		if err := decode(row.TrialLimit, &use.TrialLimit, "limits.max_trial_duration of sweep "+row.ID); err != nil {
			return err
		}

		sweeps[row.ID] = use
	}

	return nil
}

func (s *Store) readPaces(ctx context.Context, db dbsqlc.DBTX, keys []string) ([]berth.MixPace, error) {
	rows, err := s.q.ListPaces(ctx, db, keys, berth.PaceKept)
	if err != nil {
		return nil, err
	}

	paces := make([]berth.MixPace, len(rows))
	for i, row := range rows {
		paces[i] = berth.MixPace{Mix: row.Mix, Place: row.Place, At: row.UpdatedAt, Pace: berth.Pace{
			ShapeKey: row.ShapeKey, Company: berth.Company{Mode: row.Mode, AtOnce: row.AtOnce},
			Samples: row.Samples, Failed: row.Failed, Mean: row.Mean, Variance: row.Variance,
		}}
	}

	return paces, nil
}

// addPace notes how an attempt that has ended got on beside others on its GPU.
func (s *Store) addPace(ctx context.Context, tx pgx.Tx, attemptID string) error {
	row, err := s.q.CompanyOf(ctx, tx, attemptID)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && row.Mix == "" {
		return nil
	}

	if err != nil {
		return err
	}

	samples, failed := 1, 0
	if row.Failed {
		samples, failed = 0, 1
	}

	host := berth.Host{CPUMilli: row.CPUMilli, Devices: make([]berth.Device, max(row.Devices, 1))}
	company := max(row.CompanySeconds/row.Seconds, 1)

	return s.q.AddPace(ctx, tx, &dbsqlc.AddPaceParams{
		Place: host.GPUPlace(berth.Device{Model: row.Model, Profile: row.Profile}), Mix: row.Mix, ShapeKey: row.MixOwn,
		Mode: row.DeviceClass.Mode(), AtOnce: berth.CompanySize(company), Seconds: row.Seconds / company, Memory: berth.PaceMemory, Kept: berth.PaceKept, Samples: samples, Failed: failed,
	})
}

// ClearAdvice deletes the advice of all GPUs.
func (s *Store) ClearAdvice(ctx context.Context) error {
	return translate(s.q.ClearAdvice(ctx, s.pool), "forgetting how many attempts should share GPUs")
}

// StoreAdvice stores the advice of GPUs, by device.
func (s *Store) StoreAdvice(ctx context.Context, advice map[string]berth.Advice) error {
	ids := slices.Sorted(maps.Keys(advice))
	all := make([][]byte, len(ids))

	for i, id := range ids {
		all[i] = encode(advice[id])
	}

	return translate(s.q.StoreAdvice(ctx, s.pool, ids, all), "storing how many attempts should share GPUs")
}
