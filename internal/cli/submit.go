package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

// submitTries is how often a submission is tried whose answer was lost, or that
// the server could not take just then. All tries have one key, so that it is
// one sweep.
const submitTries = 4

func (o *options) submitCommand() *cobra.Command {
	var (
		key    string
		follow following
	)

	cmd := o.fileVerb("submit -f FILE", "Submit a sweep file", func(cmd *cobra.Command, to *remote, file *sweepFile) error {
		sweep, err := to.submit(cmd.Context(), file, cmp.Or(key, uuid.NewString()))
		if err != nil {
			return err
		}

		warn(cmd, sweep)

		return o.submitted(cmd, to, sweep, follow)
	})
	cmd.Flags().StringVar(&key, "idempotency-key", "", "makes a repeated submission of the same file one sweep; default: a new one")
	follow.bind(cmd)

	return cmd
}

// fileVerb is a verb with a sweep file.
func (o *options) fileVerb(use, about string, run func(cmd *cobra.Command, to *remote, file *sweepFile) error) *cobra.Command {
	var name string

	cmd := o.verb(use, about, cobra.MaximumNArgs(1), func(cmd *cobra.Command, to *remote, args []string) error {
		file, err := readSweepFile(cmd, name, args)
		if err != nil {
			return err
		}

		return run(cmd, to, file)
	})
	cmd.Flags().StringVarP(&name, "file", "f", "", "the sweep file, YAML or JSON; - reads standard input")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json") // fails only for a flag that is not there

	return cmd
}

func (r *remote) submit(ctx context.Context, file *sweepFile, key string) (client.Sweep, error) {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()

	tries := 0

	sweep, err := patiently(ctx, submitTries, func(error) {}, func() (client.Sweep, error) {
		sweep, err := answer[client.Sweep](r.CreateSweepWithBody(ctx, &client.CreateSweepParams{IdempotencyKey: key}, file.contentType, file.reader()))
		if tries++; tries == 1 && refusedToConnect(err) { // the address is wrong, or the server is not started
			giveUp()
		}

		return sweep, err
	})

	return sweep, about(file, err)
}

// about notes which file a problem is about.
func about(file *sweepFile, err error) error {
	if problem, ok := errors.AsType[*problemError](err); ok {
		problem.file = file
	}

	return err
}

func (o *options) validateCommand() *cobra.Command {
	return o.fileVerb("validate -f FILE", "Say everything that is wrong with a sweep file",
		func(cmd *cobra.Command, to *remote, file *sweepFile) error {
			result, err := answer[client.Validation](to.ValidateSweepWithBody(cmd.Context(), file.contentType, file.reader()))
			if err != nil {
				return about(file, err)
			}

			if err := o.print(cmd.OutOrStdout(), result, func() table { return validationTable(file, result) }); err != nil {
				return err
			}

			if !result.Valid {
				return exitf(ExitValidation, "%s has %s", file.name, plural(len(result.Problems), "problem", "problems"))
			}

			return nil
		})
}

func validationTable(file *sweepFile, v client.Validation) table {
	var t table

	for _, item := range v.Problems {
		t.add(problemLine(file, item))
	}

	for _, item := range v.Warnings {
		t.add("warning: " + problemLine(file, item))
	}

	if v.Valid {
		t.add(file.name + " is valid")
	}

	return t
}

func (o *options) previewCommand() *cobra.Command {
	return o.fileVerb("preview -f FILE", "Say what a sweep would do: trials, shapes, how many at once and why, how long",
		func(cmd *cobra.Command, to *remote, file *sweepFile) error {
			preview, err := answer[client.Preview](to.PreviewSweepWithBody(cmd.Context(), file.contentType, file.reader()))
			if err != nil {
				return about(file, err)
			}

			if o.output != formatTable {
				return o.print(cmd.OutOrStdout(), preview, func() table { return shapeTable(preview) })
			}

			out := cmd.OutOrStdout()
			say(out, "%s", previewText(file, preview))

			return printTable(out, shapeTable(preview))
		})
}

// previewText is a preview in sentences; its shapes follow as a table.
func previewText(file *sweepFile, p client.Preview) string {
	trials := "an unknown number of trials"
	if p.Trials > 0 {
		trials = plural(p.Trials, "trial", "trials")
	}

	shapes := plural(p.ShapesTotal, "memory shape", "memory shapes")
	if !p.Complete {
		shapes = "at least " + shapes
	}

	text := fmt.Sprintf("%s in %s: %s needed, %d known\n", trials, shapes, plural(p.ProbesNeeded, "probe", "probes"), p.ProbesCached)
	text += p.Why + "\n"

	text += stageLines(p.Stages, p.Enumerated)

	if p.Waves > 0 {
		text += plural(p.Waves, "wave", "waves")

		switch {
		case p.Duration != nil:
			text += fmt.Sprintf(", %s to %s in all", span(seconds(p.Duration.MinSeconds)), span(seconds(p.Duration.MaxSeconds)))
		case p.ProbesCached > 0:
			text += "; how long is not known, as no run was timed"
		default:
			text += "; how long is not known, as nothing is measured yet"
		}

		text += "\n"
	}

	warnings := make([]string, len(p.Warnings))
	for i, item := range p.Warnings {
		warnings[i] = "warning: " + problemLine(file, item) + "\n"
	}

	return text + strings.Join(warnings, "") + "\n"
}

// stageLines say how often each stage runs, and what that saves.
func stageLines(stages []client.PreviewStage, trials int) string {
	var text strings.Builder

	for _, s := range stages {
		fmt.Fprintf(&text, "stage %s: %s for %s", s.Name, plural(s.Runs-s.Known, "run", "runs"), plural(trials, "trial", "trials"))

		if s.Known > 0 {
			fmt.Fprintf(&text, ", as %s there", plural(s.Known, "output is", "outputs are"))
		}

		if saved := float64(trials-s.Runs+s.Known) * s.DurationSeconds; saved > 0 {
			fmt.Fprintf(&text, "; sharing saves %s of container time", span(seconds(saved)))
		}

		text.WriteString("\n")
	}

	return text.String()
}

func shapeTable(p client.Preview) table {
	t := table{header: []string{"shape", "values", "trials", "reserves", "cores", "of a gpu", "gpu peak", "sized by", "peak", "each takes"}}

	for _, s := range p.Shapes {
		each := none
		if s.DurationSeconds > 0 {
			each = span(seconds(s.DurationSeconds))
		}

		t.add(berth.ShortKey(s.Key), s.Values.Text(" "), strconv.Itoa(s.Trials), bytesText(s.MemoryBytes), cores(s.CPUMilli),
			ofGPU(s), bytesText(s.DevicePeakBytes), sizedBy(s), bytesText(s.MemoryPeakBytes), each)
	}

	if !slices.ContainsFunc(p.Shapes, func(s client.PreviewShape) bool { return s.DeviceBytes > 0 }) {
		t.drop(slices.Index(t.header, "of a gpu"), 2)
	}

	return t
}

// ofGPU is the shape's reservation on a GPU.
func ofGPU(s client.PreviewShape) string {
	if s.ExclusiveDevice {
		return "all of it"
	}

	return bytesText(s.DeviceBytes)
}

// sizedBy says where the sizes of a shape come from.
func sizedBy(s client.PreviewShape) string {
	if s.SizedBy == client.Unmeasured {
		return "guess, not measured"
	}

	return string(s.SizedBy)
}

// warn tells what the server warns of with a new sweep.
func warn(cmd *cobra.Command, sweep client.Sweep) {
	for _, warning := range sweep.Warnings {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s: %s\n", warning.Code, warning.Detail)
	}
}
