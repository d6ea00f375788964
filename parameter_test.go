package berth_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func number(kind berth.ParameterType, low, high float64) berth.Parameter {
	return berth.Parameter{Name: "p", Type: kind, Min: &low, Max: &high}
}

func TestPoints(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		min, max, step float64
		kind           berth.ParameterType
		log            bool
		count          int
		want           string // of a grid
	}{
		"int":                     {min: 1, max: 3, kind: berth.ParameterInt, want: "1 2 3"},
		"int step":                {min: 16, max: 70, step: 16, kind: berth.ParameterInt, want: "16 32 48 64"},
		"int count":               {min: 0, max: 10, count: 3, kind: berth.ParameterInt, want: "0 5 10"},
		"int count of all":        {min: 0, max: 2, count: 9, kind: berth.ParameterInt, want: "0 1 2"},
		"int log count":           {min: 1, max: 1000, count: 4, log: true, kind: berth.ParameterInt, want: "1 10 100 1000"},
		"int log crowded":         {min: 1, max: 6, count: 5, log: true, kind: berth.ParameterInt, want: "1 2 3 4 6"},
		"float step":              {min: 0.1, max: 0.5, step: 0.1, kind: berth.ParameterFloat, want: "0.1 0.2 0.3 0.4 0.5"},
		"float step short":        {min: 0, max: 1, step: 0.4, kind: berth.ParameterFloat, want: "0 0.4 0.8"},
		"float count":             {min: 0, max: 1, count: 3, kind: berth.ParameterFloat, want: "0 0.5 1"},
		"float log count":         {min: 1e-4, max: 0.1, count: 4, log: true, kind: berth.ParameterFloat, want: "0.0001 0.001 0.01 0.1"},
		"float no end":            {min: 0, max: 1, kind: berth.ParameterFloat, want: ""},
		"float step, count":       {min: 0, max: 1, step: 0.1, count: 2, kind: berth.ParameterFloat, want: "0 1"},
		"float on steps":          {min: 0, max: 1, step: 0.25, count: 3, kind: berth.ParameterFloat, want: "0 0.5 1"},
		"float step short, count": {min: 0, max: 1, step: 0.3, count: 3, kind: berth.ParameterFloat, want: "0 0.6 0.9"},
		"int on steps":            {min: 16, max: 128, step: 16, count: 4, kind: berth.ParameterInt, want: "16 48 96 128"},
		"int step short, count":   {min: 0, max: 10, step: 4, count: 2, kind: berth.ParameterInt, want: "0 8"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p := number(test.kind, test.min, test.max)
			p.Log, p.Count = test.log, test.count

			if test.step > 0 {
				p.Step = &test.step
			}

			n, ok := p.Points(berth.SearchGrid)
			require.Equal(t, test.want != "", ok)

			got := ""
			for i := range n {
				got += " " + p.Point(berth.SearchGrid, i).String()
			}

			if ok {
				got = got[1:]
			}

			require.Equal(t, test.want, got)
		})
	}
}

func TestCountIsForGridsOnly(t *testing.T) {
	t.Parallel()

	p := number(berth.ParameterInt, 1, 100)
	p.Count = 5

	n, ok := p.Points(berth.SearchRandom)
	require.True(t, ok)
	require.EqualValues(t, 100, n)
	require.Equal(t, berth.IntValue(100), p.Point(berth.SearchRandom, 99))
}

func TestActive(t *testing.T) {
	t.Parallel()

	p := berth.Parameter{When: map[string]berth.Values{"a": {berth.IntValue(1), berth.IntValue(2)}}}
	require.True(t, p.Active(berth.Assignment{"a": berth.IntValue(2)}))
	require.False(t, p.Active(berth.Assignment{"a": berth.IntValue(3)}))
	require.False(t, p.Active(berth.Assignment{}))
	require.True(t, berth.Parameter{}.Active(nil))
}
