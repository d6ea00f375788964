package cli

import (
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/berthml/berth/internal/sweepfile/imports"
)

func (o *options) importCommand() *cobra.Command {
	var source imports.Source
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Turn a sweep of W&B, Katib, NNI or Optuna into a sweep file",
		Long: `Turn a sweep of W&B, Katib, NNI or Optuna into a sweep file.

The content tells the tool: a W&B sweep, a Katib Experiment, an NNI configuration or
search space, or an Optuna journal. Standard error lists each key that the sweep file
lacks or changes, with the thing to do instead; so do comments in the file.`,
		Example: "  berth sweep import wandb.yaml > sweep.yaml\n  berth sweep import optuna.log --study digits > sweep.yaml",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if source.Name = filepath.Base(args[0]); args[0] == "-" {
				source.Text, err = io.ReadAll(cmd.InOrStdin())
			} else {
				source.Text, err = os.ReadFile(args[0])
			}
			if err != nil {
				return exitf(ExitUsage, "reading the file to import: %w", err)
			}
			source.Open = func(path string) ([]byte, error) {
				if !filepath.IsAbs(path) {
					path = filepath.Join(filepath.Dir(args[0]), path)
				}
				return os.ReadFile(path) //nolint:gosec // G304: the user's own file names it
			}
			result, err := imports.Import(source)
			if err != nil {
				return exitf(ExitUsage, "%w", err)
			}
			say(cmd.OutOrStdout(), "%s", result.Text)
			say(cmd.ErrOrStderr(), "This is a sweep of %s. Left out or changed:\n", result.Tool)
			for _, l := range result.Losses {
				say(cmd.ErrOrStderr(), "  %s: %s\n", l.Key, l.Instead)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&source.Study, "study", "", "the study of an Optuna journal that has several")
	return cmd
}
