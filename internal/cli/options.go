package cli

import (
	"os"
	"time"

	"github.com/spf13/cobra"
)

// DefaultServer is where commands look without --server and BERTH_SERVER.
const DefaultServer = "http://127.0.0.1:8080"

// options are the flags that every client command has.
type options struct {
	server string
	caFile string // PEM, of authorities beside the machine's
	token  string
	output string

	getenv func(string) string
	now    func() time.Time
	docker func() (LocalDocker, error) // nil = no Docker

	storing time.Duration // how long a download waits for files that are being stored
}

// usualStoring covers the store's turn after the end of a trial: a download may follow
// at once.
const usualStoring = 30 * time.Second

func newOptions(docker func() (LocalDocker, error)) *options {
	return &options{getenv: os.Getenv, now: time.Now, docker: docker, storing: usualStoring}
}

func (o *options) bind(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&o.server, "server", "", "where Berth is; default: BERTH_SERVER, else "+DefaultServer)
	flags.StringVar(&o.caFile, "ca-file", "", "PEM file of the authority that signed the server's certificate, beside those that this machine trusts; default: BERTH_CA_FILE")
	flags.StringVar(&o.token, "token", "", "API token; default: BERTH_TOKEN, which other users of the machine cannot see")
	flags.StringVarP(&o.output, "output", "o", "table", "table, json, yaml or csv")

	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions( // fails only for a flag that is not there
		[]string{formatTable, formatJSON, formatYAML, formatCSV}, cobra.ShellCompDirectiveNoFileComp))
}
