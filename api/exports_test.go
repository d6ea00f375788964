package api_test

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// withMetrics is a sample whose trials have points, one of them NaN.
func withMetrics(t *testing.T) *apitest.Store {
	t.Helper()

	store := apitest.Sample(t)
	store.Exec("INSERT INTO metrics (attempt_id, name, step, value, status, at) SELECT id, 'loss', 1, 0.5, 'finite', now() FROM attempts UNION ALL SELECT id, 'loss', 2, 0, 'nan', now() FROM attempts")

	return store
}

func TestExportSweep(t *testing.T) {
	t.Parallel()

	r := setup(t, withMetrics(t))
	at := "/api/v1/sweeps/" + apitest.NewID(1)[:8] + "/export"

	response := r.call("GET", at, "")
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "text/csv; charset=utf-8", response.Header.Get("Content-Type"))
	require.Equal(t, "attachment; filename=berth-"+apitest.NewID(1)[:8]+"-trials.csv", response.Header.Get("Content-Disposition"))

	rows, err := csv.NewReader(response.Body).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 5)
	require.Equal(t, []string{"number", "id", "state", "value", "params.lr", "params.width"}, rows[0][:6])
	require.Equal(t, []string{"3", apitest.TrialID(3), "succeeded", "0.95", "0.01", "64"}, rows[3][:6])

	text := r.want(http.StatusOK, "GET", at+"?format=jsonl&what=metrics", "")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	require.Len(t, lines, 10)

	for _, line := range lines {
		require.True(t, json.Valid([]byte(line)), line)
	}

	require.Contains(t, text, `{"trial":3,"attempt":1,"counts":false,"name":"loss","step":1,"value":0.5,`)
	require.Contains(t, text, `{"trial":3,"attempt":2,"counts":true,"name":"loss","step":2,"value":null,"status":"nan",`)

	for query, want := range map[string]string{
		"state=succeeded": "1 2 3 4", "state=failed,canceled": "", "state=succeeded,failed&value_min=0.95": "2 3", "value_min=0.92&value_max=0.94": "4",
	} {
		text := r.want(http.StatusOK, "GET", at+"?"+query, "")

		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		require.NoError(t, err)

		var numbers []string
		for _, row := range rows[1:] {
			numbers = append(numbers, row[0])
		}

		require.Equal(t, want, strings.Join(numbers, " "), query)
	}

	text = r.want(http.StatusOK, "GET", at+"?format=parquet", "")

	require.True(t, strings.HasPrefix(text, "PAR1") && strings.HasSuffix(text, "PAR1"), "the marks of Parquet's beginning and end")
}

func TestExportSweep_Refuses(t *testing.T) {
	t.Parallel()

	r := setup(t, withMetrics(t), func(c *api.Config) { c.Limits.Streams = 1 })
	at := "/api/v1/sweeps/" + apitest.NewID(1)

	for path, want := range map[string]int{
		at + "/export?format=xlsx":                                  http.StatusBadRequest,
		at + "/export?what=logs":                                    http.StatusBadRequest,
		at + "/export?state=lost":                                   http.StatusBadRequest,
		at + "/export?value_min=NaN":                                http.StatusBadRequest,
		at + "/export?value_min=2&value_max=1":                      http.StatusBadRequest,
		at + "/export?what=metrics&state=failed":                    http.StatusBadRequest,
		at + "/export?fmt=csv":                                      http.StatusBadRequest,
		"/api/v1/sweeps/" + apitest.NewID(77) + "/export":           http.StatusNotFound,
		"/api/v1/sweeps/" + apitest.NewID(1)[:6] + "zz" + "/export": http.StatusNotFound,
	} {
		status, text := r.text("GET", path, "")
		require.Equal(t, want, status, path+text)
	}

	stream := r.call("GET", "/api/v1/events", "")
	require.Equal(t, http.StatusOK, stream.StatusCode)

	r.want(http.StatusTooManyRequests, "GET", at+"/export", "")
}
