package cgroup_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/cgroup"
	"github.com/berthml/berth/internal/testkit/runtimetest"
)

const (
	container = "072c58f1a95f9080db4684b9f0d572b998683e389504798d2be034b084ed2620"
	pid       = 4711
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tree writes files below a new directory, whose proc and cgroup are a FS.
func tree(tb testing.TB, files map[string]string) cgroup.FS {
	tb.Helper()

	root := tb.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		require.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(tb, os.WriteFile(path, []byte(content), 0o600))
	}

	return cgroup.FS{Proc: filepath.Join(root, "proc"), Cgroup: filepath.Join(root, "cgroup")}
}

// version1 is a machine with separate hierarchies; the values come from a real
// one (Linux 6.18, Docker 20.10).
func version1() map[string]string {
	return map[string]string{
		"proc/4711/cgroup": "9:name=systemd:/docker/" + container + "\n" +
			"4:memory:/docker/" + container + "\n" +
			"2:cpu,cpuacct:/docker/" + container + "\n" +
			"0::/docker/" + container + "\n",
		"cgroup/memory/docker/" + container + "/memory.stat": "cache 8192\nrss 1\nhierarchical_memory_limit 314572800\n" +
			"total_cache 52428800\ntotal_rss 105598976\ntotal_rss_huge 67108864\ntotal_shmem 4096\n",
		"cgroup/memory/docker/" + container + "/memory.kmem.usage_in_bytes": "757760\n",
		"cgroup/memory/docker/" + container + "/memory.oom_control":         "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
		"cgroup/memory/docker/" + container + "/memory.limit_in_bytes":      "314572800\n",
		"cgroup/memory/docker/" + container + "/memory.usage_in_bytes":      "262144000\n",
		"cgroup/memory/docker/" + container + "/memory.max_usage_in_bytes":  "314568704\n",
		"cgroup/cpuacct/docker/" + container + "/cpuacct.usage":             "1500000000\n",
		"cgroup/cpu/docker/" + container + "/cpu.stat":                      "nr_periods 70\nnr_throttled 40\nthrottled_time 9000000000\n",
	}
}

// version2 is a machine with the unified hierarchy and Docker's systemd driver.
func version2() map[string]string {
	dir := "cgroup/system.slice/docker-" + container + ".scope/"

	return map[string]string{
		"proc/4711/cgroup":     "0::/system.slice/docker-" + container + ".scope\n",
		dir + "memory.stat":    "anon 104857600\nfile 52428800\nkernel 757760\nkernel_stack 1\nshmem 4096\nslab 9\n",
		dir + "memory.events":  "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n",
		dir + "memory.max":     "314572800\n",
		dir + "memory.current": "262144000\n",
		dir + "memory.peak":    "314568704\n",
		dir + "cpu.stat":       "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\nnr_periods 70\nnr_throttled 40\nthrottled_usec 9000000\n",
	}
}

func TestRead(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"version 1": {version1(), 105598976 + 4096 + 757760},
		"version 2": {version2(), 104857600 + 4096 + 757760},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			meter, err := tree(t, test.files).Open(container, pid)
			require.NoError(t, err)

			sample, err := meter.Read()
			require.NoError(t, err)
			require.WithinDuration(t, time.Now(), sample.At, time.Minute)

			sample.At = time.Time{}
			require.Equal(t, berth.MemorySample{
				WorkingSetBytes: test.want,
				CPU:             1500 * time.Millisecond,
				Periods:         70,
				Throttled:       40,
				OOMKills:        2,
				LimitBytes:      314572800,
				HighWaterBytes:  314568704,
			}, sample)
		})
	}
}

// While the charge does not rise, a sample reads only the kill counters.
func TestRead_OfAQuietProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := "cgroup/system.slice/docker-" + container + ".scope/"
		fs := tree(t, version2())
		write := func(name, content string) {
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(fs.Cgroup), dir, name), []byte(content), 0o600))
		}

		meter, err := fs.Open(container, pid)
		require.NoError(t, err)

		reads := func(anon int64) {
			t.Helper()

			sample, err := meter.Read()
			require.NoError(t, err)
			require.Equal(t, anon, sample.WorkingSetBytes)
			require.Equal(t, time.Now(), sample.At)
		}

		holds := func(anon int64) { write("memory.stat", fmt.Sprintf("anon %d\n", anon)) }

		holds(100)
		reads(100)
		holds(200)
		reads(200) // a short run is measured in full

		time.Sleep(20 * time.Second)
		reads(200)
		holds(300)
		time.Sleep(200 * time.Millisecond)
		reads(200)
		write("memory.current", strconv.Itoa(262144000+2<<20))
		reads(300) // a peak is not missed
		holds(400)
		reads(300)
		write("memory.current", "310000000")
		reads(400) // nor one near the limit
		holds(500)
		reads(500)
		write("memory.current", "100000000")
		holds(600)
		time.Sleep(200 * time.Millisecond)
		reads(500)
		time.Sleep(1800 * time.Millisecond)
		reads(600)

		holds(700)
		write("memory.events", "oom 3\noom_kill 9\n")
		write("memory.current", "50000000")

		sample, err := meter.Read()
		require.NoError(t, err)
		require.Equal(t, 9, sample.OOMKills, "the last look may be that at a kill")
		require.EqualValues(t, 600, sample.WorkingSetBytes)
	})
}

func TestReadWithoutOptionalFiles(t *testing.T) {
	t.Parallel()

	t.Run("version 1 kernel without kmem, no limit", func(t *testing.T) {
		t.Parallel()

		files := version1()
		delete(files, "cgroup/memory/docker/"+container+"/memory.kmem.usage_in_bytes")
		files["cgroup/memory/docker/"+container+"/memory.limit_in_bytes"] = "9223372036854771712\n"

		sample := read(t, files)
		require.EqualValues(t, 105598976+4096, sample.WorkingSetBytes)
		require.False(t, sample.BelowLimit)
		require.Zero(t, sample.LimitBytes)
	})

	t.Run("version 2 kernel before 5.18, no limit", func(t *testing.T) {
		t.Parallel()

		files := version2()
		dir := "cgroup/system.slice/docker-" + container + ".scope/"
		files[dir+"memory.stat"] = "anon 100\nshmem 20\nkernel_stack 3\npagetables 4\nslab 5\n"
		files[dir+"memory.max"] = "max\n"
		delete(files, dir+"memory.peak")

		sample := read(t, files)
		require.EqualValues(t, 132, sample.WorkingSetBytes)
		require.Zero(t, sample.HighWaterBytes)
		require.Zero(t, sample.LimitBytes)
	})
}

// A kill in a cgroup that never was at its limit was for the want of others.
func TestReadBelowLimit(t *testing.T) {
	t.Parallel()

	one, two := version1(), version2()
	require.False(t, read(t, one).BelowLimit)
	require.False(t, read(t, two).BelowLimit)

	one["cgroup/memory/docker/"+container+"/memory.max_usage_in_bytes"] = "209715200\n"
	two["cgroup/system.slice/docker-"+container+".scope/memory.events"] = "low 0\nhigh 0\nmax 12\noom 0\noom_kill 2\n"

	require.True(t, read(t, one).BelowLimit)
	require.True(t, read(t, two).BelowLimit)

	delete(one, "cgroup/memory/docker/"+container+"/memory.max_usage_in_bytes")
	require.False(t, read(t, one).BelowLimit, "not known")
}

func read(t *testing.T, files map[string]string) berth.MemorySample {
	t.Helper()

	meter, err := tree(t, files).Open(container, pid)
	require.NoError(t, err)

	sample, err := meter.Read()
	require.NoError(t, err)

	return sample
}

func TestOpenWithoutTheProcess(t *testing.T) {
	t.Parallel()

	t.Run("not visible", func(t *testing.T) {
		t.Parallel()

		files := version2()
		delete(files, "proc/4711/cgroup")
		require.Equal(t, 2, read(t, files).OOMKills)
	})

	t.Run("the number went to another process", func(t *testing.T) {
		t.Parallel()

		files := version2()
		files["proc/4711/cgroup"] = "0::/user.slice/somebody.scope\n"
		require.Equal(t, 2, read(t, files).OOMKills)
	})

	t.Run("nothing there", func(t *testing.T) {
		t.Parallel()

		_, err := tree(t, map[string]string{"cgroup/memory/docker/other/memory.stat": ""}).Open(container, pid)
		require.ErrorIs(t, err, cgroup.ErrGone)
	})
}

// The kernel says where a container is, not Docker's defaults.
func TestOpenBelowAnotherParent(t *testing.T) {
	t.Parallel()

	for name, parent := range map[string]string{
		"cgroupfs, --cgroup-parent": "/training/" + container,
		"systemd, --cgroup-parent":  "/training.slice/docker-" + container + ".scope",
		"rootless":                  "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" + container + ".scope",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			files := map[string]string{"proc/4711/cgroup": "0::" + parent + "\n"}
			for file, content := range version2() {
				if filepath.Dir(file) != "proc/4711" {
					files[filepath.Join("cgroup", parent, filepath.Base(file))] = content
				}
			}

			require.Equal(t, 2, read(t, files).OOMKills)

			_, err := tree(t, files).Open(container, 0)
			require.ErrorIs(t, err, cgroup.ErrGone, "without the process it cannot be found")
		})
	}

	t.Run("version 1", func(t *testing.T) {
		t.Parallel()

		files := map[string]string{}
		for file, content := range version1() {
			files[strings.ReplaceAll(file, "/docker/", "/training/")] = strings.ReplaceAll(content, "/docker/", "/training/")
		}

		require.Equal(t, 2, read(t, files).OOMKills)
	})
}

// In a container without `cgroup: host`, on cgroup version 2.
func TestOpenInAnotherNamespace(t *testing.T) {
	t.Parallel()

	for name, files := range map[string]map[string]string{
		"version 2": {
			"proc/4711/cgroup": "0::/../docker-" + container + ".scope\n",
			"proc/1/cgroup":    "0::/../../init.scope\n",
		},
		"version 1": {
			"proc/4711/cgroup": "4:memory:/../" + container + "\n2:cpu,cpuacct:/../" + container + "\n",
			"proc/1/cgroup":    "4:memory:/../..\n",
		},
		"in the parent itself": {
			"proc/4711/cgroup": "0::/../" + container + "\n",
			"proc/1/cgroup":    "0::/..\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			kernel := tree(t, files)

			_, err := kernel.Open(container, pid)
			require.ErrorContains(t, err, "cgroup: host")
			require.Equal(t, berth.KindInvalid, berth.KindOf(err))

			err = kernel.CheckNamespace()
			require.ErrorContains(t, err, "cgroup: host")
			require.Equal(t, berth.KindInvalid, berth.KindOf(err))
		})
	}
}

func TestCheckNamespace(t *testing.T) {
	t.Parallel()

	for name, files := range map[string]map[string]string{
		"a machine, version 2":      {"proc/1/cgroup": "0::/init.scope\n"},
		"a machine, version 1":      {"proc/1/cgroup": "4:memory:/\n2:cpuacct:/\n0::/init.scope\n"},
		"a container of its own":    {"proc/1/cgroup": "0::/\n"},
		"a name that begins so":     {"proc/1/cgroup": "0::/..init\n"},
		"process 1 is hidden":       {"proc/4711/cgroup": "0::/\n"},
		"a machine without cgroups": {"proc/1/cgroup": ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			require.NoError(t, tree(t, files).CheckNamespace())
		})
	}

	if _, err := os.Stat("/proc/1/cgroup"); err == nil {
		require.NoError(t, cgroup.FS{}.CheckNamespace(), "this machine")
	}
}

func TestReadGone(t *testing.T) {
	t.Parallel()

	for name, files := range map[string]map[string]string{"version 1": version1(), "version 2": version2()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			kernel := tree(t, files)
			meter, err := kernel.Open(container, pid)
			require.NoError(t, err)

			require.NoError(t, os.RemoveAll(kernel.Cgroup))

			_, err = meter.Read()
			require.ErrorIs(t, err, cgroup.ErrGone)
		})
	}
}

func TestReadMalformed(t *testing.T) {
	t.Parallel()

	files := version2()
	files["cgroup/system.slice/docker-"+container+".scope/memory.max"] = "many\n"

	meter, err := tree(t, files).Open(container, pid)
	require.NoError(t, err)

	_, err = meter.Read()
	require.ErrorIs(t, err, strconv.ErrSyntax)
	require.NotErrorIs(t, err, cgroup.ErrGone)
}

func TestHostMemory(t *testing.T) {
	t.Parallel()

	const meminfo = "MemTotal:       24678340 kB\nMemFree:         1000 kB\nMemAvailable:   20000000 kB\n"

	for name, test := range map[string]struct {
		files            map[string]string
		total, available int64
	}{
		"machine": {
			map[string]string{"proc/self/cgroup": "0::/\n"},
			24678340 << 10, 20000000 << 10,
		},
		"no cgroups": {nil, 24678340 << 10, 20000000 << 10},
		"version 1 limit above": {
			map[string]string{
				"proc/self/cgroup":                                   "4:memory:/lxc/one/worker\n",
				"cgroup/memory/lxc/one/memory.stat":                  "total_rss 1073741824\ntotal_shmem 0\n",
				"cgroup/memory/memory.limit_in_bytes":                "9223372036854771712\n",
				"cgroup/memory/lxc/memory.limit_in_bytes":            strconv.FormatInt(math.MaxInt64, 10),
				"cgroup/memory/lxc/one/memory.limit_in_bytes":        "4294967296\n",
				"cgroup/memory/lxc/one/worker/memory.limit_in_bytes": "9223372036854771712\n",
			},
			4 << 30, 3 << 30,
		},
		"version 2 limit": {
			map[string]string{
				"proc/self/cgroup":         "0::/one\n",
				"cgroup/one/memory.stat":   "anon 4294967296\n",
				"cgroup/one/memory.max":    "4294967296\n",
				"cgroup/one/memory.events": "oom_kill 0\n",
				"cgroup/one/cpu.stat":      "usage_usec 1\n",
				"cgroup/memory.stat":       "anon 1\n",
			},
			4 << 30, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			files := map[string]string{"proc/meminfo": meminfo}
			maps.Copy(files, test.files)

			host, err := tree(t, files).HostMemory()
			require.NoError(t, err)
			require.Equal(t, cgroup.HostMemory{TotalBytes: test.total, AvailableBytes: test.available}, host)
		})
	}
}

func TestHostFactsOfThisMachine(t *testing.T) {
	t.Parallel()

	if _, err := os.Stat("/proc/meminfo"); err != nil {
		runtimetest.Skip(t, "needs /proc/meminfo: %v", err)
	}

	host, err := cgroup.FS{}.HostMemory()
	require.NoError(t, err)
	require.Positive(t, host.TotalBytes)
	require.LessOrEqual(t, host.AvailableBytes, host.TotalBytes)

	boot, err := cgroup.FS{}.BootID()
	require.NoError(t, err)
	require.Len(t, boot, 36)
}

func TestKillLog(t *testing.T) {
	t.Parallel()

	const other = "15916f4ee74597e45b5f6b7944230d992b426669f78b0afb30efa7580828895b"

	line := func(constraint, full, memcg string) string {
		return "6,4166,864951,-;oom-kill:constraint=" + constraint + ",nodemask=(null),cpuset=" + other +
			",mems_allowed=0," + full + ",task_memcg=" + memcg + ",task=busy,pid=21757,uid=65532\n"
	}
	path := filepath.Join(t.TempDir(), "kmsg")
	require.NoError(t, os.WriteFile(path, []byte("6,1,1,-;Linux version\n"+line("CONSTRAINT_NONE", "global_oom", "/docker/"+other)), 0o600))

	log, err := cgroup.FS{Kmsg: path}.OpenKillLog()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })

	more := func(text string) {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = file.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}

	scope := "/system.slice/docker-" + container + ".scope"

	require.Empty(t, log.Cause(container))
	require.Equal(t, berth.OOMMachine, log.Cause(other), "the machine was out of memory, not the container")

	more(line("CONSTRAINT_MEMCG", "oom_memcg=/system.slice", scope))
	require.Equal(t, berth.OOMMachine, log.Cause(container), "the cgroup above was full")

	more(line("CONSTRAINT_MEMCG", "oom_memcg="+scope, scope))
	require.Equal(t, berth.OOMLimit, log.Cause(container))
	require.Equal(t, berth.OOMLimit, log.Cause(container), "it stays so")
	require.Equal(t, berth.OOMMachine, log.Cause(other), "later lines name it only as the cpuset")

	_, err = cgroup.FS{Kmsg: path + ".none"}.OpenKillLog()
	require.ErrorIs(t, err, fs.ErrNotExist)
}
