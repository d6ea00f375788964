// Command berth is all of Berth in one binary: server, worker, everything for
// one machine (dev), and the client commands.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berthml/berth/internal/agent/docker"
	"github.com/berthml/berth/internal/cli"
	"github.com/berthml/berth/internal/config"
)

func main() {
	ctx, stop := interruptible(context.Background(), os.Stderr)
	err := root().ExecuteContext(ctx)

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, "berth: "+err.Error())
	}

	os.Exit(cli.ExitCode(err))
}

// stoppingHint is how long after the first signal the user is told about the
// second.
const stoppingHint = time.Second

// interruptible ends the context at the first Ctrl-C or SIGTERM, and when the terminal is
// closed, for an orderly end. The second ends the process at once, as if we caught none.
func interruptible(ctx context.Context, out io.Writer) (context.Context, context.CancelFunc) {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup does
		ends = append(ends, syscall.SIGHUP)
	}

	ctx, stop := signal.NotifyContext(ctx, ends...)

	context.AfterFunc(ctx, func() {
		stop()
		time.AfterFunc(stoppingHint, func() { fmt.Fprintln(out, "berth: stopping; once more ends it at once") })
	})

	return ctx, stop
}

func root() *cobra.Command {
	var logLevel string

	cmd := &cobra.Command{
		Use:           "berth",
		Short:         "Hyperparameter sweeps of small training jobs, packed by measured memory",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return config.Apply(cmd.Flags(), os.Getenv, flagNames(cmd.Root())...)
		},
	}

	cmd.PersistentFlags().StringVar(&logLevel, "log-level", "info", "debug, info, warn or error")
	cmd.AddCommand(serverCommand(), workerCommand(), devCommand(), migrateCommand(), restoreCommand(), doctorCommand())
	cmd.AddCommand(cli.Commands(func() (cli.LocalDocker, error) { return docker.New(docker.Config{Instance: "look"}) })...)
	cli.Explain(cmd)
	allowRecovery(cmd)
	allowKeys(cmd)

	return cmd
}

// flagNames are the flags of a command and of all below it.
func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	cmd.PersistentFlags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })

	for _, below := range cmd.Commands() {
		names = append(names, flagNames(below)...)
	}

	return names
}

// logger writes to standard error, so that standard output stays data.
func logger(flags *pflag.FlagSet) (*slog.Logger, error) {
	text, err := flags.GetString("log-level")
	if err != nil {
		return nil, fmt.Errorf("reading --log-level: %w", err)
	}

	var level slog.Level
	if err := level.UnmarshalText([]byte(text)); err != nil {
		return nil, fmt.Errorf("--log-level must be debug, info, warn or error: %w", err)
	}

	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})), nil
}

// released is the version of a release; `make dist` sets it.
var released string

// version is the release's, else the module's as the build recorded it.
func version() string {
	if released != "" {
		return released
	}

	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}

	return info.Main.Version
}
