package gpu_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/agent/gpu"
)

func TestDiagnoseXID(t *testing.T) {
	t.Parallel()

	for xid, sick := range map[int]bool{
		13: false, 31: false, 43: false, 45: false, 68: false, 109: false,
		46: true, 48: true, 61: true, 62: true, 63: true, 64: true, 69: true, 74: true, 79: true, 92: true, 94: true, 95: true,
		119: true, 120: true, 121: true, 140: true, 143: true, 154: true,
		0: true, 1: true, 14: true, 999: true, -1: true, // not known: better a healthy card that rests
	} {
		d := gpu.DiagnoseXID(xid)
		require.Equal(t, sick, d.Sick, "XID %d", xid)
		require.NotEmpty(t, d.Meaning, "XID %d", xid)
		require.Equal(t, d, gpu.Event{XID: xid}.Diagnose())
	}

	require.Equal(t, "XID 79: the GPU fell off the bus, by heat, power or a bad slot: reboot the machine, and replace the GPU if this comes back",
		gpu.DiagnoseXID(79).Meaning)
	require.Contains(t, gpu.DiagnoseXID(1234).Meaning, "XID 1234: ")
}

func TestEvent_Diagnose(t *testing.T) {
	t.Parallel()

	ecc := gpu.Event{UncorrectedECC: true}.Diagnose()
	require.True(t, ecc.Sick)
	require.Contains(t, ecc.Meaning, "uncorrected ECC")

	both := gpu.Event{UncorrectedECC: true, XID: 48}.Diagnose()
	require.True(t, both.Sick)
	require.Contains(t, both.Meaning, "XID 48")

	require.True(t, gpu.Event{UncorrectedECC: true, XID: 31}.Diagnose().Sick, "lost memory is worse than the program's fault")
}

func TestContainerOf(t *testing.T) {
	t.Parallel()

	id, other := strings.Repeat("0123456789abcdef", 4), strings.Repeat("fedcba9876543210", 4)

	for name, c := range map[string]struct {
		cgroup string
		want   string
	}{
		"systemd":                   {"0::/system.slice/docker-" + id + ".scope\n", id},
		"cgroupfs":                  {"0::/docker/" + id + "\n", id},
		"another cgroup namespace":  {"0::/../docker-" + id + ".scope\n", id},
		"another one, cgroupfs":     {"0::/../../docker/" + id + "\n", id},
		"below the container":       {"0::/docker/" + id + "/init\n", id},
		"a parent of its own":       {"0::/berth.slice/" + id + "\n", id},
		"no newline":                {"0::/docker/" + id, id},
		"nested":                    {"0::/docker/" + other + "/docker/" + id + "\n", id},
		"version 1":                 {"12:cpu,cpuacct:/docker/" + id + "\n5:memory:/docker/" + id + "\n1:name=systemd:/docker/" + id + "\n", id},
		"version 1 beside an empty": {"5:memory:/docker/" + id + "\n0::/\n", id},
		"version 1, first empty":    {"13:rdma:/\n5:memory:/docker/" + id + "\n0::/system.slice/containerd.service\n", id},
		"a colon in the path":       {"0::/a:b/docker-" + id + ".scope\n", id},
		"no container":              {"0::/user.slice/user-0.slice/session-1.scope\n", ""},
		"the root":                  {"0::/\n", ""},
		"too short":                 {"0::/docker/" + id[1:] + "\n", ""},
		"too long":                  {"0::/docker/" + id + "0\n", ""},
		"capital letters":           {"0::/docker/" + strings.ToUpper(id) + "\n", ""},
		"in the controllers":        {"5:name=" + id + ":/\n", ""},
		"no cgroup file's line":     {id + "\n", ""},
		"empty":                     {"", ""},
	} {
		got, ok := gpu.ContainerOf(fstest.MapFS{"4001/cgroup": {Data: []byte(c.cgroup)}}, 4001)
		require.Equal(t, c.want, got, name)
		require.Equal(t, c.want != "", ok, name)
	}

	proc := fstest.MapFS{"4001/cgroup": {Data: []byte("0::/docker/" + id + "\n")}}

	for _, pid := range []int{4002, 0, -1} {
		_, ok := gpu.ContainerOf(proc, pid)
		require.False(t, ok, "%d", pid)
	}
}
