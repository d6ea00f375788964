package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/sweepfile/script"
)

// exported is the settings of an export.
type exported struct {
	sweep  string
	format string
	what   string
	to     string // file; empty = standard output
}

// exportFormats are the formats that the server writes.
var exportFormats = []string{string(client.ExportCSV), string(client.ExportJSONL), string(client.ExportParquet)}

func (o *options) exportCommand() *cobra.Command {
	var e exported

	cmd := o.verb("export SWEEP", "Export the trials or the metrics of a sweep for other tools", cobra.ExactArgs(1),
		func(cmd *cobra.Command, to *remote, args []string) error {
			e.sweep = args[0]

			return e.run(cmd, to)
		})
	cmd.Flags().StringVar(&e.format, "format", string(client.ExportCSV), strings.Join(exportFormats, ", "))
	cmd.Flags().StringVar(&e.what, "what", string(client.ExportTrials), "trials, one row each, or metrics, one row for each point")
	cmd.Flags().StringVarP(&e.to, "output", "o", "", "`FILE` to write; default: standard output")

	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(exportFormats, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("what", cobra.FixedCompletions([]string{string(client.ExportTrials), string(client.ExportMetrics)}, cobra.ShellCompDirectiveNoFileComp))

	return o.completeSweep(cmd)
}

func (e exported) run(cmd *cobra.Command, to *remote) error {
	if e.format == "mlflow" || e.format == "tensorboard" {
		return exitf(ExitUsage, "--format %q is written by the Python client: `berth.connect().sweep(%q).to_%s(…)`; pip install './clients/python[%s]'", e.format, e.sweep, e.format, e.format)
	}

	if !slices.Contains(exportFormats, e.format) {
		return exitf(ExitUsage, "--format %q is none that Berth exports; write one of %s", e.format, strings.Join(exportFormats, ", "))
	}

	if e.what != string(client.ExportTrials) && e.what != string(client.ExportMetrics) {
		return exitf(ExitUsage, "--what %q is neither trials nor metrics", e.what)
	}

	if e.to != "" {
		return e.toFile(cmd, to)
	}

	out := cmd.OutOrStdout()
	if file, is := out.(*os.File); is && e.format == string(client.ExportParquet) && isatty.IsTerminal(file.Fd()) {
		return exitf(ExitUsage, "Parquet is not for a terminal; write `%s`",
			script.ShellCommand("berth", "sweep", "export", e.sweep, "--format", "parquet", "-o", e.what+".parquet"))
	}

	return to.export(cmd.Context(), e, out)
}

// toFile writes a file. It replaces a regular file once all of the new one is there, and
// leaves no part; it appends to anything else, such as a device or /dev/stdout.
func (e exported) toFile(cmd *cobra.Command, to *remote) error {
	info, err := os.Stat(e.to)
	replaces := err != nil || info.Mode().IsRegular() && !strings.HasPrefix(e.to, "/dev/")

	var file *os.File

	if replaces {
		file, err = os.CreateTemp(filepath.Dir(e.to), ".berth-*.part")
	} else {
		file, err = os.OpenFile(e.to, os.O_WRONLY|os.O_APPEND, 0)
	}

	if err != nil {
		return exitf(ExitUsage, "writing %q: %w; is its directory there?", e.to, err)
	}

	if err = to.export(cmd.Context(), e, file); err == nil && replaces {
		err = keepAs(file, e.to, info)
	}

	_ = file.Close() // a file that is kept is closed

	if err != nil && replaces {
		_ = os.Remove(file.Name()) // the first error counts
	}

	return err
}

// keepAs gives a whole file its name, and the mode of the file that it replaces: nil = none.
func keepAs(file *os.File, name string, before os.FileInfo) error {
	mode := os.FileMode(0o644)
	if before != nil {
		mode = before.Mode().Perm()

		if target, err := filepath.EvalSymlinks(name); err == nil { // the target of a link, not the link
			name = target
		}
	}

	if err := errors.Join(file.Chmod(mode), file.Sync(), file.Close()); err != nil {
		return exitf(ExitError, "writing %q: %w", name, err)
	}

	if err := os.Rename(file.Name(), name); err != nil {
		return exitf(ExitError, "writing %q: %w", name, err)
	}

	return nil
}

// export writes a table as the server sends it. An answer that is cut is an error.
func (r *remote) export(ctx context.Context, e exported, w io.Writer) error {
	format, what := client.ExportFormat(e.format), client.ExportTable(e.what)
	response, err := r.streams.ExportSweep(ctx, e.sweep, &client.ExportSweepParams{Format: &format, What: &what})

	return receive(response, err, w)
}
