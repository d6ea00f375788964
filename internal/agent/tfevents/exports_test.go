//go:build nightly

package tfevents

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/testkit/runtimetest"
)

// records splits a file.
func records(t *testing.T, data []byte) (all [][]byte) {
	t.Helper()

	for len(data) > 0 {
		n, ok := DataBytes(data)
		require.True(t, ok)

		record := data[HeaderBytes : HeaderBytes+n]
		require.True(t, Valid(record, data[HeaderBytes+n:]))

		all = append(all, record)
		data = data[HeaderBytes+n+FooterBytes:]
	}

	return all
}

// Files that TensorBoard's own writer wrote, in every way in which a scalar can
// be, are read as its own reader reads them.
func TestDecoder_ReadsWhatTensorBoardWrites(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	runtimetest.Python(t, "testdata/write_events.py", dir)

	data, err := os.ReadFile(filepath.Join(dir, "oracle.json"))
	require.NoError(t, err)

	var oracle map[string][][3]any

	require.NoError(t, json.Unmarshal(data, &oracle))
	require.Len(t, oracle, 5)

	for way, want := range oracle {
		names, err := filepath.Glob(filepath.Join(dir, way, "*tfevents*"))
		require.NoError(t, err)
		require.Len(t, names, 1)

		file, err := os.ReadFile(names[0])
		require.NoError(t, err)

		var got []Scalar

		d := NewDecoder()

		for _, record := range records(t, file) {
			scalars, err := d.Scalars(record)
			require.NoError(t, err)

			got = append(got, scalars...)
		}

		require.Len(t, got, len(want), way)

		for i, w := range want {
			require.Equal(t, "a/"+way, got[i].Tag)
			require.InDelta(t, w[0], float64(got[i].Step), 0)
			require.InDelta(t, w[1], got[i].WallTime, 0)

			text, is := w[2].(string)
			require.True(t, is)

			value, err := strconv.ParseFloat(text, 64)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(float32(value)), fmt.Sprint(float32(got[i].Value)), "%s, step %d", way, i) // 0.9 is the shortest of its float32
		}
	}
}
