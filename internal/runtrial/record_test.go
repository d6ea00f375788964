package runtrial

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
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

func TestRecordParser(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		line string
		want []berth.MetricPoint
	}{
		"metric": {
			`{"type":"metric","step":3,"metrics":{"val_accuracy":0.91,"loss":0.2}}`,
			[]berth.MetricPoint{metric("loss", 3, 0.2), metric("val_accuracy", 3, 0.91)},
		},
		"no type":            {`{"step":3,"metrics":{"loss":1}}`, []berth.MetricPoint{metric("loss", 3, 1)}},
		"epoch":              {`{"epoch":7,"metrics":{"loss":1}}`, []berth.MetricPoint{metric("loss", 7, 1)}},
		"step before epoch":  {`{"epoch":7,"step":0,"metrics":{"loss":1}}`, []berth.MetricPoint{metric("loss", 0, 1)}},
		"step of a float":    {`{"step":4.0,"metrics":{"loss":1}}`, []berth.MetricPoint{metric("loss", 4, 1)}},
		"step out of range":  {`{"step":1e300,"metrics":{"loss":1}}`, []berth.MetricPoint{metric("loss", 1, 1)}},
		"no step":            {`{"metrics":{"loss":1}}`, []berth.MetricPoint{metric("loss", 1, 1)}},
		"final":              {`{"type":"final","metrics":{"loss":1}}`, []berth.MetricPoint{final(metric("loss", 1, 1))}},
		"carriage return":    {"{\"step\":3,\"metrics\":{\"loss\":1}}\r", []berth.MetricPoint{metric("loss", 3, 1)}},
		"NaN":                {`{"step":3,"metrics":{"loss":NaN}}`, []berth.MetricPoint{odd("loss", 3, berth.MetricNaN)}},
		"infinity":           {`{"step":3,"metrics":{"loss":Infinity}}`, []berth.MetricPoint{odd("loss", 3, berth.MetricPosInfinity)}},
		"minus infinity":     {`{"step":3,"metrics":{"loss":-Infinity}}`, []berth.MetricPoint{odd("loss", 3, berth.MetricNegInfinity)}},
		"NaN as text":        {`{"step":3,"metrics":{"loss":"NaN"}}`, []berth.MetricPoint{odd("loss", 3, berth.MetricNaN)}},
		"NaN in a name":      {`{"step":3,"metrics":{"a NaN \" Infinity":NaN}}`, []berth.MetricPoint{odd(`a NaN " Infinity`, 3, berth.MetricNaN)}},
		"exponent":           {`{"step":3,"metrics":{"loss":-1.5e-07}}`, []berth.MetricPoint{metric("loss", 3, -1.5e-07)}},
		"other values":       {`{"step":3,"metrics":{"a":true,"b":null,"c":"x","d":[1],"e":{},"loss":1}}`, []berth.MetricPoint{metric("loss", 3, 1)}},
		"name with NUL":      {`{"step":3,"metrics":{"a\u0000b":1,"loss":1}}`, []berth.MetricPoint{metric("loss", 3, 1)}},
		"no name":            {`{"step":3,"metrics":{"":1}}`, []berth.MetricPoint{}},
		"name too long":      {`{"step":3,"metrics":{"` + strings.Repeat("a", nameBytes+1) + `":1}}`, []berth.MetricPoint{}},
		"out of range":       {`{"step":3,"metrics":{"loss":1e999}}`, nil},
		"hello of the shim":  {`{"type":"hello","metrics":{"loss":1}}`, nil},
		"flat":               {`{"epoch":3,"val_accuracy":0.91,"loss":NaN}`, []berth.MetricPoint{odd("loss", 3, berth.MetricNaN), metric("val_accuracy", 3, 0.91)}},
		"flat, no step":      {`{"loss":1}`, []berth.MetricPoint{metric("loss", 1, 1)}},
		"flat, typed":        {`{"type":"metric","step":3,"loss":1}`, []berth.MetricPoint{metric("loss", 3, 1)}},
		"flat and final":     {`{"type":"final","loss":1}`, []berth.MetricPoint{final(metric("loss", 1, 1))}},
		"flat, own type":     {`{"type":"train","loss":1}`, []berth.MetricPoint{metric("loss", 1, 1)}},
		"flat of the shim":   {`{"type":"hello","v":1,"pid":7}`, nil},
		"nested, own type":   {`{"type":"train","metrics":{"loss":1}}`, nil},
		"nested goes first":  {`{"lr":0.1,"metrics":{"loss":1}}`, []berth.MetricPoint{metric("loss", 1, 1)}},
		"metric's own name":  {`{"metrics":3}`, []berth.MetricPoint{metric("metrics", 1, 3)}},
		"step is text":       {`{"step":"x","epoch":2,"loss":1}`, []berth.MetricPoint{metric("loss", 2, 1)}},
		"half a line":        {`{"step":3,"metrics":{"loss":`, nil},
		"no record":          {`loss = 3`, nil},
		"empty":              {``, nil},
		"another shape":      {`[1,2]`, nil},
		"no metrics at all":  {`{"type":"metric","step":1}`, []berth.MetricPoint{}},
		"quote without end":  {`{"step":3,"metrics":{"loss:NaN}}`, nil},
		"metrics are a list": {`{"metrics":[1]}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := newRecordParser().parse([]byte(c.line), noon)
			if len(c.want) == 0 {
				require.Empty(t, got)

				return
			}

			require.Equal(t, c.want, byName(got))
		})
	}
}

// What a program writes to the file it may print as well.
func TestRecords_AreReadAlikeFromFileAndStdout(t *testing.T) {
	t.Parallel()

	for _, line := range []string{
		`{"epoch":3,"val_accuracy":0.91,"loss":NaN}`, `{"step":3,"metrics":{"val_accuracy":0.91,"loss":NaN}}`,
		`{"loss":1}`, `{"metrics":{"loss":1}}`, `{"type":"final","metrics":{"loss":1}}`, `{"type":"final","loss":1}`,
		`{"type":"hello","pid":1}`, `{"loss":`, `{}`,
	} {
		file := newRecordParser().parse([]byte(line), noon)
		stdout := newLineParser("", "").parse(berth.Stdout, line+"\n", noon)
		require.ElementsMatch(t, file, stdout, line)
	}
}

// Records without a step must not replace each other, nor a final one the first.
func TestRecordParser_CountsWhereNoStepIsNamed(t *testing.T) {
	t.Parallel()

	p := newRecordParser()

	var got []berth.MetricPoint
	for _, line := range []string{
		`{"metrics":{"loss":3}}`, `{"metrics":{"loss":2}}`, `{"step":10,"metrics":{"loss":1}}`,
		`{"step":5,"metrics":{"loss":4}}`, `{"type":"final","metrics":{"loss":0}}`,
	} {
		got = append(got, p.parse([]byte(line), noon)...)
	}

	require.Equal(t, []berth.MetricPoint{
		metric("loss", 1, 3), metric("loss", 2, 2), metric("loss", 10, 1), metric("loss", 5, 4), final(metric("loss", 11, 0)),
	}, got)
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

		require.NoError(t, json.Unmarshal(quoteNonFinite([]byte(line+"}}")), &got))
		require.Equal(t, want, got.Metrics)
	})
}

func TestLineParser(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		pattern, line string
		want          []berth.MetricPoint
	}{
		"equals":            {"", "loss=0.25 acc=0.5\n", []berth.MetricPoint{metric("acc", 1, 0.5), metric("loss", 1, 0.25)}},
		"colon":             {"", "epoch done, val_loss: 3\n", []berth.MetricPoint{metric("val_loss", 1, 3)}},
		"exponents":         {"", "lr=1e-05, loss=-2.5E+3", []berth.MetricPoint{metric("loss", 1, -2500), metric("lr", 1, 1e-05)}},
		"short forms":       {"", "a=.5 b=5.", []berth.MetricPoint{metric("a", 1, 0.5), metric("b", 1, 5)}},
		"percent":           {"", "acc: 91%", []berth.MetricPoint{metric("acc", 1, 91)}},
		"not finite":        {"", "loss=nan x=Inf y=-inf", []berth.MetricPoint{odd("loss", 1, berth.MetricNaN), odd("x", 1, berth.MetricPosInfinity), odd("y", 1, berth.MetricNegInfinity)}},
		"too large":         {"", "loss=1e999", []berth.MetricPoint{odd("loss", 1, berth.MetricPosInfinity)}},
		"Keras":             {"", "5/5 ━━━━ 0s 12ms/step - accuracy: 0.9123 - loss: 3.1e-01\n", []berth.MetricPoint{metric("accuracy", 1, 0.9123), metric("loss", 1, 0.31)}},
		"Keras' bar":        {"", "1/5 loss: 9\r2/5 loss: 8\r5/5 loss: 7\r\n", []berth.MetricPoint{metric("loss", 1, 7)}},
		"slash in the name": {"", "val/loss=1", []berth.MetricPoint{metric("val/loss", 1, 1)}},
		"no number":         {"", "state=running version=1.2.3 time: 12:30 took=3.2s", nil},
		"logging":           {"", "INFO:root:val_acc=0.91", []berth.MetricPoint{metric("val_acc", 1, 0.91)}},
		"logged record":     {"", `INFO:root:{"epoch": 2, "val_acc": 0.91}`, []berth.MetricPoint{metric("val_acc", 2, 0.91)}},
		"absl":              {"", "I1125 16:00:01.123456 140 train.py:12] epoch 3, loss: 0.5", []berth.MetricPoint{metric("loss", 1, 0.5)}},
		"tqdm":              {"", "train: 100%|██████████| 938/938 [00:12<00:00, 75.1it/s, loss=0.25, acc=0.91]", []berth.MetricPoint{metric("acc", 1, 0.91), metric("loss", 1, 0.25)}},
		"Hugging Face":      {"", `{'eval_loss': 0.3, 'eval_runtime': 1.5, 'epoch': 1.0}`, []berth.MetricPoint{metric("eval_loss", 1, 0.3), metric("eval_runtime", 1, 1.5)}},
		"Python's words":    {"", `{'loss': nan, 'best': True, 'note': None, 'top': inf}`, []berth.MetricPoint{odd("loss", 1, berth.MetricNaN), odd("top", 1, berth.MetricPosInfinity)}},
		"indented JSON":     {"", "{\n  \"loss\": 0.25,\n  \"acc\": 0.5\n}\n", []berth.MetricPoint{metric("acc", 1, 0.5), metric("loss", 1, 0.25)}},
		"numbers as texts":  {"", `{"loss": "0.25", "note": "x", "hex": "0x10"}`, []berth.MetricPoint{metric("loss", 1, 0.25)}},
		"record of words":   {"", `{loss: 0.25}`, []berth.MetricPoint{metric("loss", 1, 0.25)}},
		"bar and record":    {"", "5/5 ━━━━ 0s\r5/5 ━━━━ 1s 12ms/step {\"loss\": 0.5}", []berth.MetricPoint{metric("loss", 1, 0.5)}},
		"colours":           {"", "\x1b[32mloss\x1b[0m=\x1b[1;31m0.25\x1b[0m", []berth.MetricPoint{metric("loss", 1, 0.25)}},
		"end of a sentence": {"", "The val_acc is done: acc=0.5. Next", []berth.MetricPoint{metric("acc", 1, 0.5)}},
		"bars between":      {"", "loss=0.25|acc: 0.5|", []berth.MetricPoint{metric("acc", 1, 0.5), metric("loss", 1, 0.25)}},
		"words before":      {"", "Epoch 3 Train Loss: 0.1 | Val Loss: 0.4", []berth.MetricPoint{metric("Train Loss", 1, 0.1), metric("Val Loss", 1, 0.4)}},
		"words with it":     {"", "training loss: 0.1", []berth.MetricPoint{metric("training loss", 1, 0.1)}},
		"no split":          {"", "interval loss: 0.1", []berth.MetricPoint{metric("loss", 1, 0.1)}},
		"thousands":         {"", "perplexity: 1,234.56 loss=1,2", []berth.MetricPoint{metric("loss", 1, 1)}},
		"two lines in one":  {"", "loss=2\nloss=1", []berth.MetricPoint{metric("loss", 1, 2), metric("loss", 2, 1)}},
		"object":            {"", `{"step": 4, "loss": 0.5, "acc": NaN, "note": "x"}`, []berth.MetricPoint{odd("acc", 4, berth.MetricNaN), metric("loss", 4, 0.5)}},
		"object's epoch":    {"", `  {"epoch": 2, "loss": 0.5}`, []berth.MetricPoint{metric("loss", 2, 0.5)}},
		"object, no step":   {"", `{"loss": 0.5}`, []berth.MetricPoint{metric("loss", 1, 0.5)}},
		"object, odd step":  {"", `{"step": 1e300, "loss": 0.5}`, []berth.MetricPoint{metric("loss", 1, 0.5)}},
		"broken object":     {"", `{"loss": 0.5`, nil},
		"own pattern":       {`(?P<name>\w+) is (?P<value>\S+)`, "loss is 0.5 acc=1", []berth.MetricPoint{metric("loss", 1, 0.5)}},
		"own, no number":    {`(?P<name>\w+) is (?P<value>\S+)`, "loss is low", nil},
		"groups turned":     {`(?P<value>[\d.]+) (?P<name>\w+)`, "0.5 loss", []berth.MetricPoint{metric("loss", 1, 0.5)}},
		"own, no groups":    {`\w+=\d`, "loss=1", nil},
		"garbage":           {"", "\xff\xfe loss=1 \x00", []berth.MetricPoint{metric("loss", 1, 1)}},
		"empty":             {"", "\r\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			require.Equal(t, c.want, byName(newLineParser(c.pattern, "").parse(berth.Stdout, c.line, noon)))
		})
	}
}

// The objective is found however its words are written, and nothing else takes its name.
func TestLineParser_KnowsTheObjective(t *testing.T) {
	t.Parallel()

	for line, want := range map[string]string{
		"Val Loss: 0.4": "val_loss", "val-loss: 0.4": "val_loss", "VAL/LOSS=0.4": "val_loss", "val_loss 0.4, val_loss=0.4": "val_loss",
		"Train Loss: 0.4": "Train Loss", "loss: 0.4": "loss",
	} {
		require.Equal(t, []berth.MetricPoint{metric(want, 1, 0.4)}, newLineParser("", "val_loss").parse(berth.Stdout, line, noon), line)
	}

	own := newLineParser(`(?P<name>\w+ \w+): (?P<value>\S+)`, "val_loss").parse(berth.Stdout, "Val Loss: 0.4", noon)
	require.Equal(t, "Val Loss", own[0].Name, "a pattern's own names stand")
}

// Frameworks print to standard error what looks like metrics.
func TestLineParser_Stderr(t *testing.T) {
	t.Parallel()

	oom := "OOM when allocating tensor with shape[256] on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"

	for line, want := range map[string][]berth.MetricPoint{
		oom: nil, "loss=0.25": nil, `{"loss": 0.25}`: {metric("loss", 1, 0.25)},
		"loss=0.25, val_acc=0.5": {metric("loss", 1, 0.25), metric("val_acc", 1, 0.5)},
	} {
		require.Equal(t, want, byName(newLineParser("", "val_acc").parse(berth.Stderr, line, noon)), line)
	}

	own := newLineParser(`(?P<name>\w+)=(?P<value>\S+)`, "val_acc")
	require.Equal(t, []berth.MetricPoint{metric("loss", 1, 0.25)}, own.parse(berth.Stderr, "loss=0.25", noon))

	require.NotEmpty(t, newLineParser("", "").parse(berth.Stdout, oom, noon), "or this test shows nothing")
}

func TestLineParser_CountsByName(t *testing.T) {
	t.Parallel()

	p := newLineParser("", "")
	require.Equal(t, []berth.MetricPoint{metric("a", 1, 1)}, p.parse(berth.Stdout, "a=1", noon))
	require.Equal(t, []berth.MetricPoint{metric("a", 2, 2), metric("b", 1, 3)}, p.parse(berth.Stdout, "a=2 b=3", noon))
}

func FuzzLineParser(f *testing.F) {
	f.Add("loss=1e-3 {\"a\":NaN}\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range append(newLineParser("", "").parse(berth.Stdout, text, noon), newRecordParser().parse([]byte(text), noon)...) {
			require.NotEmpty(t, p.Name)
			require.False(t, math.IsNaN(p.Value) || math.IsInf(p.Value, 0))
			require.NotContains(t, p.Name, "\x00")
		}
	})
}
