package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

func (o *options) listHostsCommand() *cobra.Command {
	return o.verb("list", "List the machines, what is reserved on each and what is free", cobra.NoArgs,
		func(cmd *cobra.Command, to *remote, _ []string) error {
			return show(o, cmd, o.hostTable)(to.hosts(cmd.Context()))
		})
}

func (r *remote) hosts(ctx context.Context) ([]client.Host, error) {
	list, err := answer[client.HostList](r.ListHosts(ctx))

	return list.Data, err
}

func (o *options) hostTable(hosts []client.Host) table {
	t := table{header: []string{"name", "id", "state", "attempts", "cores reserved", "memory reserved", "others leave", "disk free", "outputs", "gpus", "seen"}}

	for _, h := range hosts {
		t.add(h.Name, short(h.ID), hostState(h), strconv.Itoa(h.Attempts),
			cores(h.CPUMilliReserved)+" of "+cores(h.CPUMilli),
			berth.BytesText(h.MemoryReservedBytes)+" of "+bytesText(h.MemoryBytes-h.MemoryHeadroomBytes),
			bytesText(h.MemoryFreeBytes), diskFree(h), berth.BytesText(h.OutputBytes), strconv.Itoa(len(h.Devices)), o.ago(h.LastSeenAt))
	}

	return t
}

func (o *options) hostStateCommand(verb, about, state string) *cobra.Command {
	cmd := o.verb(verb+" HOST", about, cobra.ExactArgs(1), func(cmd *cobra.Command, to *remote, args []string) error {
		rows := func(host client.Host) table { return o.hostTable([]client.Host{host}) }

		return show(o, cmd, rows)(answer[client.Host](to.UpdateHost(cmd.Context(), args[0], client.HostPatch{State: client.HostPatchState(state)})))
	})

	return cmd
}

func (o *options) removeHostCommand() *cobra.Command {
	var force bool

	cmd := o.verb("remove HOST", "Remove a machine that will not come back; its trials run again elsewhere", cobra.ExactArgs(1),
		func(cmd *cobra.Command, to *remote, args []string) error {
			params := &client.RemoveHostParams{Force: some(force)}

			return confirm(cmd, "host %s is removed; what it held is free", args[0])(to.RemoveHost(cmd.Context(), args[0], params))
		})
	cmd.Flags().BoolVar(&force, "force", false, "remove it although its worker answers: you make sure that no trial runs there")

	return cmd
}

// diskFree is the free space of a host's disk, with a warning when it will be full
// before long.
func diskFree(h client.Host) string {
	text := berth.BytesText(h.DiskFreeBytes)
	if h.DiskBytes > 0 {
		text += " of " + bytesText(h.DiskBytes)
	}

	if h.DiskWarning != "" {
		text += ", fills up"
	}

	return text
}

// hostState is a host's state in one word.
func hostState(h client.Host) string {
	if h.CordonedAt != nil && h.State == "ready" {
		return "cordoned"
	}

	return h.State
}

// deviceState is whether a GPU takes attempts; why not, in plain words.
func deviceState(d client.Device) string {
	cordoned := strings.TrimSuffix("cordoned: "+d.CordonReason, ": ")

	switch {
	case d.Problem != "" && d.CordonedAt != nil:
		return d.Problem + "; also " + cordoned
	case d.Problem != "":
		return d.Problem
	case d.CordonedAt != nil:
		return cordoned
	case d.MPSProblem != "":
		return "ready, but not for MPS: " + d.MPSProblem
	default:
		return "ready"
	}
}

// deviceAdvice is how many attempts should share a GPU, by measurement.
func deviceAdvice(d client.Device) string {
	switch {
	case d.Advice == nil:
		return "-"
	case d.Advice.AtOnce == 0:
		return "by " + d.Advice.Mode
	case d.Advice.Trying:
		return fmt.Sprintf("tries %d by %s", d.Advice.AtOnce, d.Advice.Mode)
	default:
		return fmt.Sprintf("%d by %s", d.Advice.AtOnce, d.Advice.Mode)
	}
}

// deviceSharing is how the attempts on a GPU share it, or how later ones will.
func deviceSharing(d client.Device) string {
	if d.Attempts == 0 && d.MPSContexts > 0 && d.MPSProblem == "" && d.Mode != client.Exclusive {
		return string(client.MPS)
	}

	return string(d.Mode)
}

// contextLimit is how many processes a GPU takes, as its attempts share it.
func contextLimit(d client.Device) int {
	if deviceSharing(d) == string(client.MPS) {
		return min(d.MPSContexts, d.MaxContexts)
	}

	return d.MaxContexts
}

func (o *options) listDevicesCommand() *cobra.Command {
	return o.verb("list", "List the GPUs of all machines", cobra.NoArgs, func(cmd *cobra.Command, to *remote, _ []string) error {
		hosts, err := to.hosts(cmd.Context())
		devices := []client.Device{}
		t := deviceTable()

		for _, h := range hosts {
			for _, d := range h.Devices {
				devices = append(devices, d)
				addDevice(&t, d, h.Name)
			}
		}

		return show(o, cmd, func([]client.Device) table { return t })(devices, err)
	})
}

func deviceTable() table {
	return table{header: []string{"device", "host", "model", "state", "sharing", "attempts", "advised", "reserved", "others leave", "contexts", "busy"}}
}

func addDevice(t *table, d client.Device, host string) {
	t.add(d.ID, host, strings.TrimSpace(d.Model+" "+d.Profile), deviceState(d), deviceSharing(d), strconv.Itoa(d.Attempts), deviceAdvice(d),
		berth.BytesText(d.ReservedBytes)+" of "+bytesText(d.MemoryBytes-d.HeadroomBytes), bytesText(d.FreeBytes),
		fmt.Sprintf("%d of %d", d.ContextsReserved, contextLimit(d)), milliText(d.ActivityReserved))
}

func (o *options) cordonDeviceCommand() *cobra.Command {
	var reason string

	cmd := o.verb("cordon GPU", "Place nothing new on a GPU; what runs there goes on", cobra.ExactArgs(1), func(cmd *cobra.Command, to *remote, args []string) error {
		return o.updateDevice(cmd, to, args[0], client.DevicePatch{State: client.DevicePatchStateCordoned, Reason: reason})
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those whose trials wait for the GPU")

	return cmd
}

func (o *options) readyDeviceCommand() *cobra.Command {
	cmd := o.verb("ready GPU", "Place trials on a cordoned GPU again", cobra.ExactArgs(1), func(cmd *cobra.Command, to *remote, args []string) error {
		return o.updateDevice(cmd, to, args[0], client.DevicePatch{State: client.DevicePatchStateReady})
	})

	return cmd
}

func (o *options) updateDevice(cmd *cobra.Command, to *remote, id string, patch client.DevicePatch) error {
	return show(o, cmd, func(device client.Device) table {
		t := deviceTable()
		addDevice(&t, device, short(device.HostID))

		return t
	})(answer[client.Device](to.UpdateDevice(cmd.Context(), id, patch)))
}
