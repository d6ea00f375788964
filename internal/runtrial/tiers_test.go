package runtrial

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
)

// table is the metrics of one attempt in a database whose answers may be lost.
type table map[string]berth.MetricPoint

func key(p berth.MetricPoint) string { return fmt.Sprint(p.Name, "/", p.Step) }

// store writes a batch as output does. With fails it is cut off there, when the
// step was done or not.
func (d table) store(b *batch, fails string) bool {
	drop := func() {
		for k, p := range d {
			for _, name := range b.drop {
				if p.Name == name {
					delete(d, k)
				}
			}
		}
	}
	put := func() {
		for _, p := range b.points {
			d[key(p)] = p
		}
	}

	switch fails {
	case "before":
		return false
	case "dropped":
		drop()

		return false
	case "dropped, and known":
		drop()

		b.drop = nil

		return false
	case "put":
		drop()

		b.drop = nil

		put()

		return false
	default:
		drop()
		put()

		return true
	}
}

// However the reports of the script and the shim, and failures of the database,
// follow each other: a script that reports the objective has the rows that it had
// without the shim, and the two never mix under one name.
func TestFallback_ScriptGetsWhatItGotWithoutTheShim(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		live := rapid.Bool().Draw(t, "live")

		objective := "acc"
		if rapid.Bool().Draw(t, "no objective") {
			objective = ""
		}

		with, without := newSeries(newThinner(Bounds{}.orDefault(), 0), objective), newSeries(newThinner(Bounds{}.orDefault(), 0), objective)
		with.levels[ofShim].late = !live

		own, stored := table{}, table{}
		shims := table{}
		names := rapid.SampledFrom([]string{"acc", "loss", "val_loss"})

		for range rapid.IntRange(0, 40).Draw(t, "reports") {
			p := metric(names.Draw(t, "name"), rapid.Int64Range(1, 4).Draw(t, "step"), rapid.Float64Range(0, 1).Draw(t, "value"))

			switch rapid.SampledFrom([]string{"script", "shim", "shim", "flush", "in flight"}).Draw(t, "what") {
			case "script":
				with.add(ofFile, p)
				without.add(ofFile, p)
				own[key(p)] = p
			case "shim":
				with.add(ofShim, p)
				shims[key(p)] = p
			case "flush":
				b := with.pending()
				if !stored.store(&b, rapid.SampledFrom([]string{"", "before", "dropped", "dropped, and known", "put"}).Draw(t, "fails")) {
					with.restore(b)
				}
			case "in flight": // reports come while a batch is being stored
				b := with.pending()
				q := metric("acc", 9, 0.5)
				with.add(ofFile, q)
				without.add(ofFile, q)
				own[key(q)] = q

				if !stored.store(&b, rapid.SampledFrom([]string{"", "put", "before"}).Draw(t, "fails")) {
					with.restore(b)
				}
			}
		}

		with.end()

		b := with.pending()
		require.True(t, stored.store(&b, ""))

		reported := make(map[string]bool)
		for _, p := range own {
			reported[p.Name] = true
		}

		want := maps.Clone(own)

		silent := reported["acc"] || objective == "" && len(own) > 0
		for k, p := range shims {
			if !silent && !reported[p.Name] {
				want[k] = p
			}
		}

		require.Equal(t, want, stored)

		if reported["acc"] {
			o := berth.Objective{Metric: "acc", Strategy: berth.StrategyBest}
			value, status := with.objective(o)
			wantValue, wantStatus := without.objective(o)
			require.Equal(t, wantStatus, status)
			require.Equal(t, wantValue, value)
		}
	})
}

// A run that goes on from what another knew leaves the script its word, and the
// point of it that the rate holds back.
func TestSeries_ResumeOverrulesTheShim(t *testing.T) {
	t.Parallel()

	for name, reported := range map[string]string{"the objective": "acc", "another metric": "loss"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			held := metric(reported, 7, 0.75)
			k := keptSeries{
				Histories: map[string]history{reported: {Last: 0.75, LastStatus: berth.MetricFinite, figures: figures{Finite: 1}}},
				Held:      map[string]berth.MetricPoint{reported: held},
			}

			s := newSeries(newThinner(Bounds{}.orDefault(), 0), "acc")
			s.levels[ofShim].late = true
			s.resume(k, newThinner(Bounds{}.orDefault(), 0))
			s.add(ofShim, metric(reported, 1, 0.25), metric("acc", 1, 0.25))
			s.end()

			want := map[string]float64{key(held): 0.75}
			if reported != "acc" {
				want["acc/1"] = 0.25
			}

			got := make(map[string]float64)
			for _, p := range s.pending().points {
				got[key(p)] = p.Value
			}

			require.Equal(t, want, got)
		})
	}
}
