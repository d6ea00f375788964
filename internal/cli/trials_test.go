package cli

import (
	"bytes"
	"encoding/csv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

// A sweep file may call a parameter "value" or "state". A reader of CSV that knows columns by
// name, as csv.DictReader does, keeps the last of two with one name.
func TestTrialCSV_ParametersNamedLikeColumns(t *testing.T) {
	t.Parallel()

	table := trialCSV([]client.Trial{{
		Number: 1, State: client.TrialStateSucceeded, Value: new(0.97),
		Params: map[string]berth.Value{"value": berth.IntValue(5), "state": berth.StringValue("NY")},
	}})

	var out bytes.Buffer
	require.NoError(t, printCSV(&out, table))

	rows, err := csv.NewReader(&out).ReadAll()
	require.NoError(t, err)

	read := make(map[string]string)
	for i, name := range rows[0] {
		read[name] = rows[1][i]
	}

	require.Len(t, read, len(rows[0]), "two columns have one name: %v", rows[0])
	require.Equal(t, []string{"0.97", "5", "succeeded", "NY"}, []string{read["value"], read["params.value"], read["state"], read["params.state"]})
}
