package cli

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/berthml/berth/api/client"
)

// files reads the state of the files of a trial's attempt, with all stored
// ones; attempt 0 = the last attempt.
func (r *remote) files(ctx context.Context, trialID string, attempt int) (client.FileList, error) {
	var set client.FileList

	all, err := pages(0, func(cursor string, limit int) ([]client.File, string, error) {
		page, err := answer[client.FileList](r.ListFiles(ctx, trialID, &client.ListFilesParams{
			Attempt: some(attempt), Cursor: some(cursor), Limit: some(limit),
		}))

		if cursor == "" {
			set = page
		}

		return page.Data, page.NextCursor, err
	})
	set.Data, set.NextCursor = all, ""

	return set, err
}

func (o *options) filesCommand() *cobra.Command {
	var wanted int

	cmd := o.verb("files SWEEP NUMBER", "List the files that a trial wrote and that are stored", cobra.ExactArgs(2),
		func(cmd *cobra.Command, to *remote, args []string) error {
			trial, err := to.trial(cmd.Context(), args)
			if err != nil {
				return err
			}

			set, err := to.files(cmd.Context(), trial.ID, wanted)
			if err != nil {
				return err
			}

			sayFiles(cmd, set)

			return o.print(cmd.OutOrStdout(), set, func() table { return fileTable(set.Data) })
		})
	cmd.Flags().IntVar(&wanted, "attempt", 0, "which attempt; default: the one that counts")

	return o.completeSweep(cmd)
}

func fileTable(files []client.File) table {
	t := table{header: []string{"path", "bytes", "sha256", "stored"}}

	for _, f := range files {
		t.add(pathText(f.Path), strconv.FormatInt(f.Bytes, 10), f.Sha256, f.StoredAt.Format(time.RFC3339))
	}

	return t
}

// leftOutNamed is how many files that were left out are named on a terminal.
const leftOutNamed = 10

// sayFiles prints which files are not stored, and why.
func sayFiles(cmd *cobra.Command, set client.FileList) {
	w := cmd.ErrOrStderr()

	if set.State != client.FileStateStored {
		say(w, "files of attempt %d: %s\n", set.Attempt, filesText(set))
	}

	if set.LeftOut == 0 {
		return
	}

	say(w, "%s left out:\n", plural(set.LeftOut, "file was", "files were"))

	named := set.LeftOutFiles[:min(len(set.LeftOutFiles), leftOutNamed)]
	for _, f := range named {
		say(w, "  %s: %s\n", pathText(f.Path), f.Reason)
	}

	if more := set.LeftOut - len(named); more > 0 {
		say(w, "  and %s more (-o json names the first 1,000)\n", grouped(int64(more)))
	}
}

// filesText is such as pending: the store does not answer.
func filesText(set client.FileList) string {
	if set.State == client.FileStateOff {
		return oneLine(cmp.Or(set.Problem, string(set.State)))
	}

	return strings.TrimSuffix(string(set.State)+": "+oneLine(set.Problem), ": ")
}

// pathText is a path for people: one that a terminal would misread is quoted.
func pathText(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(path)
	}

	return path
}
