package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/testkit/apitest"
)

func TestStage(t *testing.T) {
	t.Parallel()

	store, made, awaited := apitest.Staged(t)
	url := serve(t, store)

	require.Equal(t, rows(
		"KEY           STAGE  SWEEP   TRIAL  HOST    MADE       TOOK  STORED  OPEN TRIALS  ENDED TRIALS  STATE",
		made[:12]+"  base   digits  1      laptop  120 s ago  40 s  -       1            1             needed",
	), succeed(t, url, "stage", "list").stdout)
	require.Equal(t, rows(
		"key,stage,sweep,trial,host,made,took,stored,open trials,ended trials,state",
		awaited[:12]+",base,again,2,,,,,1,0,no output yet",
		made[:12]+",base,digits,1,laptop,120 s ago,40 s,,1,1,needed",
	), succeed(t, url, "stage", "list", "--sweep", "again", "-o", "csv").stdout)

	require.Equal(t, rows(
		"stage       base",
		"key         "+awaited,
		"state       no output yet",
		"awaited by  trial 2 of sweep again ("+short(apitest.NewID(2))+")",
		"used by     1 open and 0 ended trials",
		"why         differs from "+made[:8]+" (sweep digits, trial 1) in values: width is 64, there it was 32",
		"image       berth-examples/digits@sha256:1",
		"command     python3 base.py --width=64",
		"values      width=64",
	), succeed(t, url, "stage", "get", awaited[:8]).stdout)
	require.Contains(t, succeed(t, url, "stage", "get", made).stdout,
		"made by  trial 1 of sweep digits ("+short(apitest.SweepID)+"), attempt "+apitest.AttemptID(1, 1))

	refused := execute(t.Context(), url, "stage", "forget", made[:12])
	require.Equal(t, ExitConflict, refused.code)
	require.Contains(t, refused.stderr, "trials of sweep again")

	require.Contains(t, execute(t.Context(), url, "__complete", "stage", "forget", "").stdout, made[:12]+"\tbase (sweep digits, trial 1)")

	store.Exec("UPDATE trials SET state = 'canceled', finished_at = now() WHERE finished_at IS NULL")

	unused := succeed(t, url, "stage", "get", awaited).stdout
	require.Contains(t, unused, "state         no output, and no trial waits for it\n")
	require.Contains(t, unused, "last used by  trial 2 of sweep again ("+short(apitest.NewID(2))+")\n")
	require.NotContains(t, unused, "awaited by")
	require.Contains(t, succeed(t, url, "stage", "forget", made[:12]).stderr, "the next trial that needs stage "+made[:12]+" runs it again")
	require.Equal(t, ExitNotFound, execute(t.Context(), url, "stage", "forget", made).code)
	require.Equal(t, "[]\n", succeed(t, url, "stage", "list", "-o", "json").stdout)
}

func rows(list ...string) string { return strings.Join(list, "\n") + "\n" }
