package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/berthml/berth/api/client"
)

func (o *options) listHostsCommand() *cobra.Command {
	cmd := o.verb("list", "List the machines, what is reserved on each and what is free", cobra.NoArgs,
		func(cmd *cobra.Command, to *remote, _ []string) error {
			hosts, err := answer[client.HostList](to.ListHosts(cmd.Context()))
			if err != nil {
				return err
			}

			return o.print(cmd.OutOrStdout(), listOf(hosts.Data), func() table { return o.hostTable(hosts.Data) })
		})
	cmd.Aliases = []string{"ls"}

	return cmd
}

func (o *options) hostTable(hosts []client.Host) table {
	t := table{header: []string{"name", "id", "state", "attempts", "cores reserved", "memory reserved", "others leave", "disk free", "gpus", "seen"}}

	for _, h := range hosts {
		t.add(h.Name, short(h.ID), h.State, strconv.Itoa(h.Attempts),
			cores(h.CPUMilliReserved)+" of "+cores(h.CPUMilli),
			mibOrZero(h.MemoryReservedBytes)+" of "+mib(h.MemoryBytes-h.MemoryHeadroomBytes),
			mib(h.MemoryFreeBytes), mibOrZero(h.DiskFreeBytes), strconv.Itoa(len(h.Devices)), o.ago(h.LastSeenAt))
	}

	return t
}

func (o *options) hostStateCommand(verb, about, state string) *cobra.Command {
	cmd := o.verb(verb+" HOST", about, cobra.ExactArgs(1), func(cmd *cobra.Command, to *remote, args []string) error {
		host, err := answer[client.Host](to.UpdateHost(cmd.Context(), args[0], client.HostPatch{State: client.HostPatchState(state)}))
		if err != nil {
			return err
		}

		return o.print(cmd.OutOrStdout(), host, func() table { return o.hostTable([]client.Host{host}) })
	})

	return o.completeFirst(cmd, func(ctx context.Context, to *remote) ([]string, error) {
		hosts, err := answer[client.HostList](to.ListHosts(ctx))
		words := make([]string, len(hosts.Data))

		for i, h := range hosts.Data {
			words[i] = h.Name + "\t" + h.State
		}

		return words, err
	})
}

func (o *options) listDevicesCommand() *cobra.Command {
	return o.verb("list", "List the GPUs of all machines", cobra.NoArgs, func(cmd *cobra.Command, to *remote, _ []string) error {
		hosts, err := answer[client.HostList](to.ListHosts(cmd.Context()))
		if err != nil {
			return err
		}

		devices := []client.Device{}
		t := table{header: []string{"device", "host", "model", "reserved", "capacity", "free", "contexts"}}

		for _, h := range hosts.Data {
			for _, d := range h.Devices {
				devices = append(devices, d)
				t.add(d.ID, h.Name, d.Model, mibOrZero(d.ReservedBytes), mib(d.MemoryBytes-d.HeadroomBytes), mib(d.FreeBytes),
					fmt.Sprintf("%d of %d", d.ContextsReserved, d.MaxContexts))
			}
		}

		return o.print(cmd.OutOrStdout(), devices, func() table { return t })
	})
}
