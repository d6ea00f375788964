package metrics

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// metric is a finite point.
func metric(name string, step int64, value float64) berth.MetricPoint {
	return berth.MetricPoint{Name: name, Step: step, Value: value, Status: berth.MetricFinite, At: noon}
}

func odd(name string, step int64, status berth.MetricStatus) berth.MetricPoint {
	return berth.MetricPoint{Name: name, Step: step, Status: status, At: noon}
}

func final(p berth.MetricPoint) berth.MetricPoint {
	p.Final = true

	return p
}

func byName(points []berth.MetricPoint) []berth.MetricPoint {
	slices.SortStableFunc(points, func(a, b berth.MetricPoint) int { return cmp.Compare(a.Name, b.Name) })

	return points
}

func TestRecord(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		line string
		want []berth.MetricPoint
	}{
		"metric": {
			`{"type":"metric","step":3,"metrics":{"val_accuracy":0.91,"loss":0.2}}`,
			[]berth.MetricPoint{metric("loss", 3, 0.2), metric("val_accuracy", 3, 0.91)},
		},
		"step before epoch":  {`{"epoch":7,"step":0,"metrics":{"loss":1}}`, []berth.MetricPoint{metric("loss", 0, 1)}},
		"step out of range":  {`{"step":1e300,"metrics":{"loss":1}}`, []berth.MetricPoint{metric("loss", 1, 1)}},
		"final":              {`{"type":"final","metrics":{"loss":1}}`, []berth.MetricPoint{final(metric("loss", 1, 1))}},
		"carriage return":    {"{\"step\":3,\"metrics\":{\"loss\":1}}\r", []berth.MetricPoint{metric("loss", 3, 1)}},
		"NaN":                {`{"step":3,"metrics":{"loss":NaN}}`, []berth.MetricPoint{odd("loss", 3, berth.MetricNaN)}},
		"infinity":           {`{"step":3,"metrics":{"loss":Infinity}}`, []berth.MetricPoint{odd("loss", 3, berth.MetricPosInfinity)}},
		"NaN as text":        {`{"step":3,"metrics":{"loss":"NaN"}}`, []berth.MetricPoint{odd("loss", 3, berth.MetricNaN)}},
		"NaN in a name":      {`{"step":3,"metrics":{"a NaN \" Infinity":NaN}}`, []berth.MetricPoint{odd(`a NaN " Infinity`, 3, berth.MetricNaN)}},
		"other values":       {`{"step":3,"metrics":{"a":true,"b":null,"c":"x","d":[1],"e":{},"loss":1}}`, []berth.MetricPoint{metric("loss", 3, 1)}},
		"an object in it":    {`{"epoch":3,"val":{"acc":0.9,"more":{"x":1}},"note":{"a":"b"}}`, []berth.MetricPoint{metric("val/acc", 3, 0.9)}},
		"half an epoch":      {`{"epoch":2.5,"loss":1}`, []berth.MetricPoint{metric("loss", 1, 1)}},
		"name with NUL":      {`{"step":3,"metrics":{"a\u0000b":1,"loss":1}}`, []berth.MetricPoint{metric("loss", 3, 1)}},
		"no name":            {`{"step":3,"metrics":{"":1}}`, []berth.MetricPoint{}},
		"name too long":      {`{"step":3,"metrics":{"` + strings.Repeat("a", NameBytes+1) + `":1}}`, []berth.MetricPoint{}},
		"out of range":       {`{"step":3,"metrics":{"loss":1e999}}`, []berth.MetricPoint{odd("loss", 3, berth.MetricPosInfinity)}},
		"hello of the shim":  {`{"type":"hello","metrics":{"loss":1}}`, nil},
		"flat":               {`{"epoch":3,"val_accuracy":0.91,"loss":NaN}`, []berth.MetricPoint{odd("loss", 3, berth.MetricNaN), metric("val_accuracy", 3, 0.91)}},
		"flat and final":     {`{"type":"final","loss":1}`, []berth.MetricPoint{final(metric("loss", 1, 1))}},
		"flat of the shim":   {`{"type":"hello","v":1,"pid":7}`, nil},
		"step with a point":  {`{"step":4.0,"metrics":{"loss":1}}`, []berth.MetricPoint{metric("loss", 1, 1)}},
		"nested, own type":   {`{"type":"train","metrics":{"loss":1}}`, []berth.MetricPoint{metric("train loss", 1, 1)}},
		"metric's own name":  {`{"metrics":3}`, []berth.MetricPoint{metric("metrics", 1, 3)}},
		"half a line":        {`{"step":3,"metrics":{"loss":`, nil},
		"another shape":      {`[1,2]`, nil},
		"no metrics at all":  {`{"type":"metric","step":1}`, []berth.MetricPoint{}},
		"metrics are a list": {`{"metrics":[1]}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := NewReader("", "").Read(berth.Stdout, c.line, noon)
			if len(c.want) == 0 {
				require.Empty(t, got)

				return
			}

			require.Equal(t, c.want, byName(got))
		})
	}
}

// Records without a step must not replace each other, nor a final one the first.
func TestRecord_CountsWhereNoStepIsNamed(t *testing.T) {
	t.Parallel()

	p := NewReader("", "")

	var got []berth.MetricPoint
	for _, line := range []string{
		`{"metrics":{"loss":3}}`, `{"metrics":{"loss":2}}`, `{"step":10,"metrics":{"loss":1}}`,
		`{"step":5,"metrics":{"loss":4}}`, `{"type":"final","metrics":{"loss":0}}`,
	} {
		got = append(got, p.Read(berth.Stdout, line, noon)...)
	}

	require.Equal(t, []berth.MetricPoint{
		metric("loss", 1, 3), metric("loss", 2, 2), metric("loss", 10, 1), metric("loss", 5, 4), final(metric("loss", 11, 0)),
	}, got)
}

// transformers writes parts of epochs and rounds them: the first logs of a large data set are all
// of epoch 0.0. They are numbered in order. What names its epochs as whole numbers, or steps, is
// not; a step that begins anew in each epoch names no place on the curve.
func TestReader_EpochsThatAreRounded(t *testing.T) {
	t.Parallel()

	for text, want := range map[string][]int64{
		"{'loss': 1, 'epoch': 0.0}\n{'loss': 1, 'epoch': 0.0}\n{'loss': 1, 'epoch': 0.0}\n{'loss': 1, 'epoch': 0.01}":                          {1, 2, 3, 4},
		"{'loss': 1, 'epoch': 1.0}\n{'eval_loss': 1, 'epoch': 1.0}\n{'loss': 1, 'epoch': 2.0}":                                                 {1, 1, 2},
		`{"loss": 1, "epoch": 0}` + "\n" + `{"loss": 1, "epoch": 0}`:                                                                           {0, 0},
		`{"loss": 1, "step": 3, "epoch": 0.0}` + "\n" + `{"loss": 1, "step": 3, "epoch": 0.0}`:                                                 {3, 3},
		`{"epoch": 1, "step": 100, "loss": 1}` + "\n" + `{"epoch": 2, "step": 100, "loss": 1}` + "\n" + `{"epoch": 3, "step": 100, "loss": 1}`: {100, 101, 102},
	} {
		var got []int64
		for _, p := range NewReader("", "loss").readAll(berth.Stdout, text) {
			if strings.HasSuffix(p.Name, "loss") {
				got = append(got, p.Step)
			}
		}

		require.Equal(t, want, got, text)
	}
}

// Names that no series takes are not remembered for ever; the objective's always is.
func TestSteps_AreBounded(t *testing.T) {
	t.Parallel()

	p := NewReader("", "val_acc")
	for i := range 3 * MaxNames {
		p.readAll(berth.Stdout, fmt.Sprintf("img_%06d.jpg: 0.97\n", i))
	}

	require.LessOrEqual(t, len(p.steps), MaxNames+1)
	require.Equal(t, []berth.MetricPoint{metric("val_acc", 1, 1)}, p.readAll(berth.Stdout, "val_acc=1"))
	require.Equal(t, []berth.MetricPoint{metric("val_acc", 2, 2)}, p.readAll(berth.Stdout, "val_acc=2"))
}

func TestQuoteNonFinite_MakesJSONOfWhatPythonWrites(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z "\\]{1,3}(NaN|Infinity|)`), 1, 4, rapid.ID).Draw(t, "names")
		line := `{"metrics": {`
		want := map[string]any{}

		for i, name := range names {
			key, err := json.Marshal(name)
			require.NoError(t, err)

			token := rapid.SampledFrom([]string{"NaN", "Infinity", "-Infinity"}).Draw(t, "token")
			line += map[bool]string{true: ", "}[i > 0] + string(key) + ": " + token
			want[name] = token
		}

		var got struct{ Metrics map[string]any }

		require.NoError(t, json.Unmarshal(QuoteNonFinite([]byte(line+"}}")), &got))
		require.Equal(t, want, got.Metrics)
	})
}
