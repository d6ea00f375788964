package fault_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
	"github.com/berthml/berth/internal/testkit/fault"
)

// faults are the faults of a hundred calls.
func faults(seed uint64) []string {
	var seen []string

	i := fault.New(seed, fault.Odds{Before: 0.2, After: 0.2}, func(text string) { seen = append(seen, text) })
	r := fake.NewLedger(nil)
	r.Faults = i.Faults(fault.Ledger)

	for n := range 100 {
		_ = r.AbandonAttempt(context.Background(), fmt.Sprint(n%7), "x") // its error is in the trace
	}

	return seen
}

func TestInjector_EveryKind(t *testing.T) {
	t.Parallel()

	launch := berth.Launch{AttemptID: "a", Image: "i"}

	for kind, odds := range map[fault.Kind]fault.Odds{
		fault.Before: {Before: 1}, fault.After: {After: 1}, fault.Half: {Half: 1}, fault.Hang: {Hang: 1},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := fake.NewDocker("boot", "i", func(p *fake.Process) int { <-p.Killed(); return 0 }, nil)
				defer d.Close()

				i := fault.New(1, odds, nil)
				d.Faults = i.Faults(fault.Docker)
				began := time.Now()

				_, err := d.Ensure(t.Context(), launch)
				require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
				require.Equal(t, map[string]map[fault.Kind]int{"Ensure": {kind: 1}}, i.Injected())

				require.Equal(t, kind == fault.Hang, time.Since(began) == time.Minute)
				i.Quiet()

				list, err := d.List(t.Context())
				require.NoError(t, err)

				switch kind {
				case fault.After:
					require.Equal(t, berth.ContainerRunning, list[0].State)
				case fault.Half:
					require.Equal(t, berth.ContainerCreated, list[0].State)
				default:
					require.Empty(t, list)
				}

				c, err := d.Ensure(t.Context(), launch)
				require.NoError(t, err)
				require.Equal(t, berth.ContainerRunning, c.State)
			})
		})
	}
}

func TestInjector_HangsUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := fault.New(1, fault.Odds{Hang: 1}, nil)

		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()

		ledger := fake.NewLedger(nil)
		ledger.Faults = i.Faults(fault.Ledger)

		began := time.Now()
		_, err := ledger.SuspectLeases(ctx)
		require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}

func TestLife_CallsOfTheDeadDoNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := fake.NewDocker("boot", "i", func(p *fake.Process) int { <-p.Killed(); return 0 }, nil)
		defer d.Close()

		life := fault.NewLife()
		d.Faults = fault.New(1, fault.Odds{}, nil).Faults(fault.Docker)
		life.Kill()

		returned := make(chan error, 1)
		go func() {
			_, err := d.Ensure(life.Within(t.Context()), berth.Launch{AttemptID: "a", Image: "i"})
			returned <- err
		}()

		synctest.Wait()
		require.Empty(t, returned)
		life.Bury()
		require.Equal(t, berth.KindUnavailable, berth.KindOf(<-returned))
		require.Empty(t, d.Live())
	})
}
