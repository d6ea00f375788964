package failure_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

const mib = 1 << 20

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// onGPU is an attempt in the middle of training, with room on its device.
func onGPU(exit int, lines ...string) failure.Evidence {
	return failure.Evidence{
		ExitCode: exit, LogTail: lines,
		Device: failure.DeviceEvidence{Asked: true, Measured: true, PeakBytes: 900 * mib, LimitBytes: 1280 * mib, FreeMeasured: true, FreeBytes: 4000 * mib, Stepped: true},
	}
}

// used is an attempt whose peak and limit, in MiB, were these.
func used(peak, limit int64, exit int, lines ...string) failure.Evidence {
	return failure.Evidence{ExitCode: exit, LogTail: lines, PeakBytes: peak * mib, MemoryLimitBytes: limit * mib}
}

// killed is an attempt that the kernel killed with this peak of 4,096 MiB, on a machine with
// available MiB left.
func killed(peak, available int64) failure.Evidence {
	return with(used(peak, 4096, 137), func(e *failure.Evidence) {
		e.OOMKilled, e.Host = true, failure.HostEvidence{Measured: true, AvailableBytes: available * mib}
	})
}

// withDisk is an attempt on a host whose disk had at least free MiB free.
func withDisk(free int64, lines ...string) failure.Evidence {
	return failure.Evidence{
		ExitCode: 1, LogTail: lines, HostName: "a",
		Disk: failure.DiskEvidence{Measured: true, FreeBytes: free * mib, LogFreeBytes: free * mib, HeadroomBytes: 2048 * mib},
	}
}

const noSpace = "OSError: [Errno 28] No space left on device: '/trial/checkpoint/m.h5'"

// earlyNoSpace is an attempt that was refused a file in its first hour, while its
// files and others' filled the disk, and ended in its tenth.
func earlyNoSpace(last []string, change func(*failure.Evidence)) failure.Evidence {
	early := traceback(noSpace)[1:5] // it was caught and printed

	return with(withDisk(0, append(early, last...)...), func(e *failure.Evidence) {
		e.OldLines, e.Disk.FilledBytes, e.Disk.FullBefore = len(early), 3000*mib, 9*time.Hour
		change(e)
	})
}

// reports is an attempt that ended well and reported its objective.
func reports(e failure.Evidence, fromLog bool) failure.Evidence {
	e.ExitCode, e.Objective, e.HasObjective, e.ObjectiveStatus, e.FromLog = 0, "acc", true, berth.MetricFinite, fromLog

	return e
}

func with(e failure.Evidence, change func(*failure.Evidence)) failure.Evidence {
	change(&e)

	return e
}

func traceback(last ...string) []string {
	return slices.Concat([]string{
		"Epoch 1/5", "Traceback (most recent call last):",
		`  File "/app/train.py", line 57, in <module>`, "    main()",
	}, last, []string{""})
}

// noBLAS is TensorFlow 2.21 with 700 MiB free (one H200, 2026-11-21).
var noBLAS = append([]string{
	"E0000 00:00:1 cuda_blas.cc:196] failed to create cublas handle: the resource allocation failed",
}, traceback("tensorflow.python.framework.errors_impl.InternalError: Graph execution error: No blas support for stream")...)

const (
	tfGPU  = "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[64,1024] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"
	tfCPU  = "ResourceExhaustedError: OOM when allocating tensor with shape[64,1024] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu"
	tfInit = "failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY: out of memory"
	tfWarn = "failed to allocate 735.56M (771293184 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory"
	tfSoft = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.20GiB with freed_by_count=0. The caller indicates that this is not a failure, but this may mean that there could be performance gains if more memory were available."
)

// TestClassify has every way of ending that the classifier tells apart, with
// failures 5, 24-27 and 31 of docs/reliability.md.
func TestClassify(t *testing.T) {
	t.Parallel()

	objective := failure.Evidence{Objective: "val_accuracy", HasObjective: true, ObjectiveStatus: berth.MetricFinite}

	for name, test := range map[string]struct {
		evidence failure.Evidence
		want     berth.FailureKind
		says     string // part of the message
	}{
		// Reasons of our own come first.
		"image missing": {
			failure.Evidence{StartKind: berth.FailureImageMissing, StartMessage: "No such image", Image: "digits:1", HostName: "gpu-1"},
			berth.FailureInfra, `image "digits:1" is not on host "gpu-1" any more; pull or load it there`,
		},
		"image not pulled": {
			failure.Evidence{
				StartKind: berth.FailureImageMissing, StartMessage: "pulling image: unauthorized; docker login", PullFailed: true, Image: "digits:1", HostName: "gpu-1",
			},
			berth.FailureInfra, `image "digits:1" is not on host "gpu-1", and cannot be pulled there: pulling image: unauthorized; docker login`,
		},
		"bad entry point":        {failure.Evidence{StartKind: berth.FailureBadCommand, ExitCode: 127}, berth.FailureBadCommand, "check command"},
		"start failed":           {failure.Evidence{StartKind: berth.FailureInfra}, berth.FailureInfra, "tries again"},
		"canceled":               {failure.Evidence{Intent: failure.IntentCancel, ExitCode: 137}, berth.FailureCanceled, "canceled"},
		"preempted":              {failure.Evidence{Intent: failure.IntentStop, ExitCode: 143}, berth.FailurePreempted, "checkpoint"},
		"timed out":              {failure.Evidence{Intent: failure.IntentTimeout, ExitCode: 137}, berth.FailureTimedOut, "max_trial_duration"},
		"probed for long enough": {failure.Evidence{Intent: failure.IntentProbed, ExitCode: 143, Limits: failure.Limits{ProbeFor: 2 * time.Minute}}, berth.FailureOK, "2m0s"},
		"pruned":                 {failure.Evidence{Intent: failure.IntentPrune, ExitCode: 75, StopWhy: "it was worse"}, berth.FailurePruned, "stopped early: it was worse"},
		"pruned, exit 0":         {with(objective, func(e *failure.Evidence) { e.Intent = failure.IntentPrune }), berth.FailurePruned, "stopped early"},
		"final before a stop": {
			with(objective, func(e *failure.Evidence) { e.Intent, e.ExitCode, e.Final = failure.IntentPrune, 143, true }),
			berth.FailureOK, `finished: its final "val_accuracy" stands; early stopping came later`,
		},
		"plateau": {
			with(objective, func(e *failure.Evidence) {
				e.Intent, e.ExitCode, e.StopWhy = failure.IntentPlateau, 75, "no better in 5 reports"
			}),
			berth.FailureOK, "stopped early, and its value stands: no better in 5 reports",
		},
		"plateau of NaN": {
			failure.Evidence{Intent: failure.IntentPlateau, Objective: "loss", HasObjective: true, ObjectiveStatus: berth.MetricNaN},
			berth.FailureNotFinite, "stopped early: ",
		},

		"log flood": {
			failure.Evidence{
				Intent: failure.IntentFlood, ExitCode: 137, Limits: failure.Limits{LogRateBytes: 5 * mib, LogFloodFor: 30 * time.Second},
			},
			berth.FailureLogFlood, "printed more than 5 MiB of log a second for 30s, a short line counted as 1 KiB, and was stopped; print less",
		},
		"disk quota": {
			failure.Evidence{Intent: failure.IntentQuota, ExitCode: 1, LogTail: traceback("OSError"), Limits: failure.Limits{OutputBytes: 10_240 * mib}},
			berth.FailureDiskQuota, "wrote more than 10,240 MiB to /trial/out, /trial/checkpoint and its working directory",
		},

		// Exit 0.
		"ok":                      {objective, berth.FailureOK, "finished"},
		"ok, no objective":        {failure.Evidence{}, berth.FailureOK, "finished"},
		"no result":               {failure.Evidence{Objective: "val_accuracy"}, berth.FailureNoResult, `"val_accuracy"`},
		"NaN":                     {failure.Evidence{Objective: "loss", HasObjective: true, ObjectiveStatus: berth.MetricNaN}, berth.FailureNotFinite, "= nan"},
		"child OOM, exit 0":       {with(objective, func(e *failure.Evidence) { e.OOMKilled = true }), berth.FailureOK, "data loader"},
		"scratch refused, exit 0": {with(onGPU(0, tfSoft, tfWarn), func(e *failure.Evidence) { e.Device.PeakBytes = e.Device.LimitBytes }), berth.FailureOK, "finished"},
		"no device":               {with(onGPU(0), func(e *failure.Evidence) { e.Device.PeakBytes, e.Device.Must = 0, true }), berth.FailureNoDevice, "fell back to the CPU"},
		"no device, and why": {
			with(onGPU(0), func(e *failure.Evidence) {
				e.Device.PeakBytes, e.Device.Must, e.Device.NoGPU = 0, true, "Could not load dynamic library 'libcudnn.so.8'"
			}),
			berth.FailureNoDevice, "install in the image what it misses (it said: Could not load dynamic library 'libcudnn.so.8')",
		},
		"needs no device":                    {with(onGPU(0), func(e *failure.Evidence) { e.Device.PeakBytes = 0 }), berth.FailureOK, "trials like it run on cores"},
		"the card is gone, and nobody heard": {onGPU(1, "cudaSetDevice() on GPU:0 failed. Status: CUDA-capable device(s) is/are busy or unavailable"), berth.FailureInfra, "its GPU failed under it"},
		"busy or unavailable, and full": {
			with(onGPU(1, "cudaSetDevice() on GPU:0 failed. Status: CUDA-capable device(s) is/are busy or unavailable"), func(e *failure.Evidence) { e.Device.FreeBytes = 100 * mib }),
			berth.FailureDeviceBusy, "busy or unavailable",
		},
		"device not measured": {with(onGPU(0), func(e *failure.Evidence) { e.Device.Measured = false; e.Device.PeakBytes = 0 }), berth.FailureOK, ""},

		// Exit codes of the contract, and the shim's record.
		"75":            {failure.Evidence{ExitCode: 75}, berth.FailurePreempted, "75"},
		"78":            {failure.Evidence{ExitCode: 78, LogTail: []string{"width must be even"}}, berth.FailureBadConfig, "width must be even"},
		"86":            {onGPU(86), berth.FailureDeviceOOM, "with 1,280 MiB reserved (exit code 86)"},
		"86 on the CPU": {failure.Evidence{ExitCode: 86}, berth.FailureUserError, "86"},
		"87":            {failure.Evidence{ExitCode: 87}, berth.FailureHostOOM, "87"},
		"87, far from the limit": {
			used(6, 4096, 87), berth.FailureHostOOM,
			"limited to 4,096 MiB (6 MiB when last measured) (exit code 87); Berth retries with more; nothing but its own word says so, so other trials of its shape keep their size",
		},
		"reported":            {with(onGPU(1), func(e *failure.Evidence) { e.ReportedKind = berth.FailureDeviceOOM }), berth.FailureDeviceOOM, "reported"},
		"reported on the CPU": {failure.Evidence{ExitCode: 86, ReportedKind: berth.FailureDeviceOOM}, berth.FailureUserError, "86"},
		"reported, GPU full before the first step": {
			with(onGPU(86), func(e *failure.Evidence) {
				e.ReportedKind, e.Device.Stepped, e.Device.FreeBytes = berth.FailureDeviceOOM, false, 100*mib
			}), berth.FailureDeviceBusy, "waits for room",
		},
		"reported, host, at its limit": {with(used(4000, 4096, 87), func(e *failure.Evidence) { e.ReportedKind = berth.FailureHostOOM }), berth.FailureHostOOM, "reported"},
		"reported, host, far from the limit": {
			with(used(6, 4096, 87, traceback("MemoryError: Unable to allocate 7.00 TiB for an array")...),
				func(e *failure.Evidence) { e.ReportedKind = berth.FailureHostOOM }),
			berth.FailureUserError, "(exit code 87): it could not get memory",
		},
		"reported, host, not measured": {failure.Evidence{ExitCode: 87, ReportedKind: berth.FailureHostOOM, LogTail: []string{"MemoryError"}}, berth.FailureUserError, "could not get memory"},

		// The kernel's memory killer.
		"OOM": {
			failure.Evidence{ExitCode: 137, OOMKilled: true, MemoryLimitBytes: 640 * mib},
			berth.FailureHostOOM,
			"ran out of host memory: the container was limited to 640 MiB and the kernel killed it (its files in /tmp and /dev/shm count); Berth retries with more",
		},
		"OOM by counter only": {failure.Evidence{ExitCode: 137, OOMKills: 1}, berth.FailureHostOOM, ""},
		"OOM by event only":   {failure.Evidence{ExitCode: 137, OOMEvent: true}, berth.FailureHostOOM, ""},
		"docker kill":         {failure.Evidence{ExitCode: 137}, berth.FailureKilled, "from outside"},

		// An allocation that was refused counts with a peak near the limit only.
		"MemoryError at the limit": {used(950, 1024, 1, traceback("MemoryError")...), berth.FailureHostOOM, "MemoryError"},
		"MemoryError": {
			used(6, 4096, 1, traceback("MemoryError")...), berth.FailureUserError,
			"could not get memory, which was not for its limit: the container was limited to 4,096 MiB (6 MiB when last measured); make the array, the batch or the model smaller",
		},
		"MemoryError that the program got over": {used(6, 4096, 3, append(traceback("MemoryError"), traceback("KeyError: 'lr'")...)...), berth.FailureUserError, "(exit code 3): KeyError: 'lr'"},
		"numpy MemoryError": {
			used(6, 4096, 1, traceback("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.00 TiB for an array with shape (962072674304,)")...),
			berth.FailureUserError, "Unable to allocate 7.00 TiB",
		},
		"torch on the CPU": {
			used(6, 4096, 1, traceback("RuntimeError: [enforce fail at alloc_cpu.cpp:121] err == 0. "+
				"DefaultCPUAllocator: can't allocate memory: you tried to allocate 7696581394432 bytes. Error code 12 (Cannot allocate memory)")...),
			berth.FailureUserError, "allocate 7696581394432 bytes",
		},
		"MemoryError after a kill": {with(used(6, 4096, 1, traceback("MemoryError")...), func(e *failure.Evidence) { e.OOMKilled = true }), berth.FailureHostOOM, "the kernel killed it"},
		"talks of MemoryError":     {failure.Evidence{ExitCode: 1, LogTail: traceback("ValueError: not a MemoryError at all")}, berth.FailureUserError, "ValueError"},
		"bad_alloc":                {used(1000, 1024, 134, "terminate called after throwing an instance of 'std::bad_alloc'"), berth.FailureHostOOM, "std::bad_alloc"},
		"data loader":              {failure.Evidence{ExitCode: 1, LogTail: traceback("RuntimeError: DataLoader worker (pid 41) is killed by signal: Killed.")}, berth.FailureHostOOM, "DataLoader"},
		"TF, CPU tensor":           {used(1000, 1024, 1, traceback(tfCPU)...), berth.FailureHostOOM, "CPU:0"},

		// The machine's memory ran out, and the kernel chose a process of the trial.
		"machine out of memory, says the log": {
			with(used(300, 4096, 137), func(e *failure.Evidence) { e.OOMKilled, e.OOMCause = true, berth.OOMMachine }), berth.FailureInfra,
			"the machine ran out of memory, and the kernel killed a process of the trial, which was not at its limit: the container was limited to 4,096 MiB (300 MiB when last measured)",
		},
		"its own limit, says the log": {
			with(used(6, 4096, 137), func(e *failure.Evidence) {
				e.OOMKilled, e.OOMCause, e.Host = true, berth.OOMLimit, failure.HostEvidence{Measured: true, AvailableBytes: 1}
			}),
			berth.FailureHostOOM, "the kernel killed it",
		},
		"a kill, and never at its limit":                        {with(used(300, 4096, 1), func(e *failure.Evidence) { e.OOMKilled, e.OOMKills, e.BelowLimit = true, 1, true }), berth.FailureInfra, "machine"},
		"a kill, and at its limit":                              {with(used(300, 4096, 1), func(e *failure.Evidence) { e.OOMKilled, e.OOMKills = true, 1 }), berth.FailureHostOOM, ""},
		"killed between two samples":                            {killed(6, 20_000), berth.FailureHostOOM, ""},
		"killed where the machine had less left than the limit": {killed(300, 200), berth.FailureInfra, "machine"},
		"killed at its limit on a full machine":                 {killed(4000, 0), berth.FailureHostOOM, ""},
		"SIGKILL on a full machine":                             {with(used(300, 4096, 137), func(e *failure.Evidence) { e.Host = failure.HostEvidence{Measured: true, AvailableBytes: 50 * mib} }), berth.FailureInfra, "machine"},

		// The disk of the host, and file systems that only the trial fills.
		"the host's disk is full": {withDisk(0, traceback("OSError: [Errno 28] No space left on device: '/trial/checkpoint/m.h5'")...), berth.FailureInfra, `the disk of host "a" was full`},
		"the host's disk is nearly full": {
			withDisk(1000, "RESOURCE_EXHAUSTED: /trial/checkpoint/x; No space left on device", "the checkpoint was not written"), berth.FailureInfra,
			"had 1,000 MiB free, less than the 2,048 MiB",
		},
		"no space, and the host's disk has room":        {withDisk(90_000, traceback("OSError: [Errno 28] No space left on device: '/tmp/x'")...), berth.FailureUserError, "resources.shm_size"},
		"its /dev/shm is full, and the host's disk too": {withDisk(0, traceback("OSError: [Errno 28] No space left on device: '/dev/shm/x'")...), berth.FailureUserError, "resources.shm_size"},
		"another error on a full disk": {
			withDisk(0, traceback("RuntimeError: [enforce fail at inline_container.cc:593] . PytorchStreamWriter failed writing file data/1: file write failed")...),
			berth.FailureInfra, "it failed then (exit code 1): RuntimeError: [enforce fail",
		},
		"another error on a disk that is nearly full": {withDisk(20, traceback("ValueError: shapes do not match")...), berth.FailureUserError, "shapes"},
		"a bus error while the disk was full, or soon after": {
			with(withDisk(0), func(e *failure.Evidence) { e.ExitCode, e.Disk.FullBefore = 135, time.Minute }), berth.FailureInfra, `the disk of host "a" was full`,
		},
		"a bus error long after the disk was full":           {with(withDisk(0), func(e *failure.Evidence) { e.ExitCode, e.Disk.FullBefore = 135, time.Minute+1 }), berth.FailureCrashed, "bus error"},
		"no space of hour one, and it failed in hour ten":    {earlyNoSpace(traceback("ValueError: shapes"), func(*failure.Evidence) {}), berth.FailureUserError, "ValueError: shapes"},
		"no space of hour one, raised once more in hour ten": {earlyNoSpace(traceback(noSpace), func(*failure.Evidence) {}), berth.FailureInfra, "it said: " + noSpace},
		"no space of hour one, and not a word since":         {earlyNoSpace(nil, func(*failure.Evidence) {}), berth.FailureInfra, "it said: " + noSpace},
		"no space of hour one, on a disk that is still full": {
			earlyNoSpace(traceback("RuntimeError: no checkpoint"), func(e *failure.Evidence) { e.Disk.FullBefore = 0 }), berth.FailureDiskQuota, "it said: " + noSpace,
		},
		"its own files filled the disk, below the quota": {
			with(withDisk(48, "No space left on device"), func(e *failure.Evidence) { e.Disk.FilledBytes = 2000 * mib }), berth.FailureDiskQuota,
			`wrote 2,000 MiB to /trial/out, /trial/checkpoint and its working directory, which filled the disk of host "a": it had 48 MiB free`,
		},
		"no space, and nobody looked at the disk": {
			with(withDisk(90_000, traceback("OSError: [Errno 28] No space left on device")...), func(e *failure.Evidence) { e.Disk.Missed = true }),
			berth.FailureInfra, `at which Berth did not look`,
		},
		"the disk has no inodes": {
			with(withDisk(90_000, traceback("OSError: [Errno 28] No space left on device: '/trial/out/x'")...), func(e *failure.Evidence) { e.Disk.Problem = "no inodes" }),
			berth.FailureInfra, `the disk of host "a" takes no files: no inodes`,
		},
		"the disk is read-only": {
			with(withDisk(90_000, traceback("OSError: [Errno 30] Read-only file system: '/trial/out/x'")...), func(e *failure.Evidence) { e.Disk.Problem = "read-only" }),
			berth.FailureInfra, "takes no files",
		},

		// What a program printed may be lost.
		"it ended well on a full disk, and its report is missing": {
			with(withDisk(0), func(e *failure.Evidence) { e.ExitCode, e.Objective = 0, "acc" }), berth.FailureInfra, `reports of "acc" may be lost`,
		},
		"it ended well, nobody looked, and the disk of Docker's logs is full": {
			with(reports(withDisk(90_000), true), func(e *failure.Evidence) { e.Disk.Missed, e.Disk.LogUnseen = true, true }), berth.FailureOK, "finished",
		},
		"it ended well, and Docker may have dropped its best":  {reports(withDisk(0), true), berth.FailureInfra, "the disk of Docker's logs"},
		"it ended well on a full disk, and reported in a file": {reports(withDisk(0), false), berth.FailureOK, "finished"},
		"it ended well within the headroom":                    {reports(withDisk(20), true), berth.FailureOK, "finished"},
		"it ended well, and reported when the disk had room again": {
			with(reports(withDisk(0), true), func(e *failure.Evidence) { e.ReportedSince, e.Disk.FilledBytes = true, 3000*mib }), berth.FailureOK, "finished",
		},
		"it ended well, and filled the disk": {with(reports(withDisk(0), true), func(e *failure.Evidence) { e.Disk.FilledBytes = 3000 * mib }), berth.FailureInfra, "ended well"},
		"it ended well, and only the disk of Docker's logs was full": {
			with(reports(withDisk(90_000), true), func(e *failure.Evidence) { e.Disk.LogFreeBytes = 0 }), berth.FailureInfra, "the disk of Docker's logs",
		},
		"it ended well, and its log is torn": {with(reports(withDisk(90_000), true), func(e *failure.Evidence) { e.LogTorn = true }), berth.FailureInfra, "a part of its log is lost"},

		// Docker and the host.
		"Docker restarted":                    {failure.Evidence{ExitCode: 2, DaemonLost: true}, berth.FailureInfra, "live-restore"},
		"Docker restarted, OOM":               {failure.Evidence{ExitCode: 137, DaemonLost: true, OOMKilled: true}, berth.FailureHostOOM, ""},
		"Docker restarted, exit 0, no result": {failure.Evidence{DaemonLost: true, Objective: "loss"}, berth.FailureInfra, "Docker was away"},
		"Docker restarted, exit 0":            {with(objective, func(e *failure.Evidence) { e.DaemonLost = true }), berth.FailureOK, ""},
		"host restarted":                      {failure.Evidence{ExitCode: 255, HostRestarted: true}, berth.FailureInfra, "restarted"},
		"entry point of init, 127":            {failure.Evidence{ExitCode: 127, LogTail: []string{"[FATAL tini (7)] exec pyhton3 failed: No such file or directory"}}, berth.FailureBadCommand, "pyhton3"},
		"entry point not runnable":            {failure.Evidence{ExitCode: 126}, berth.FailureBadCommand, "126"},
		"asked to stop from outside":          {failure.Evidence{ExitCode: 143}, berth.FailurePreempted, "143"},
		"abort":                               {failure.Evidence{ExitCode: 134, LogTail: []string{"F0000 check failed"}}, berth.FailureCrashed, "check failed"},
		"segmentation fault":                  {failure.Evidence{ExitCode: 139}, berth.FailureCrashed, "signal 11"},
		"bus error":                           {failure.Evidence{ExitCode: 135}, berth.FailureCrashed, "shm_size"},
		"exception":                           {failure.Evidence{ExitCode: 1, LogTail: traceback("ValueError: Shapes (32,) and (64,) are incompatible")}, berth.FailureUserError, "ValueError: Shapes (32,) and (64,) are incompatible"},
		"read-only root":                      {failure.Evidence{ExitCode: 1, LogTail: traceback("OSError: [Errno 30] Read-only file system: '/app/x'")}, berth.FailureUserError, "/trial/out"},
		"no network":                          {failure.Evidence{ExitCode: 1, LogTail: traceback("URLError: <urlopen error [Errno -3] Temporary failure in name resolution>")}, berth.FailureUserError, "network: true"},
		"GPU words on the CPU":                {failure.Evidence{ExitCode: 1, LogTail: []string{tfInit}}, berth.FailureUserError, ""},
		"exit code of the program":            {failure.Evidence{ExitCode: 42, LogTail: []string{"bye"}}, berth.FailureUserError, "exit code 42"},
		"control characters in quote":         {failure.Evidence{ExitCode: 1, LogTail: []string{"\x1b[31mred\x1b[0m\xff\x07"}}, berth.FailureUserError, ": red"},

		// GPU memory: the framework's own error.
		"TF":             {onGPU(1, traceback(tfGPU)...), berth.FailureDeviceOOM, "GPU_0_bfc"},
		"TF copy":        {onGPU(1, "InternalError: Failed copying input tensor from CPU:0 to GPU:0 in order to run _EagerConst: Dst tensor is not initialized."), berth.FailureDeviceOOM, "Dst tensor"},
		"TF fatal":       {onGPU(134, "EigenAllocator for GPU ran out of memory when allocating 4096"), berth.FailureDeviceOOM, "Eigen"},
		"JAX":            {onGPU(1, "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 5.51GiB."), berth.FailureDeviceOOM, "5.51GiB"},
		"JAX, older":     {onGPU(1, "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory"), berth.FailureDeviceOOM, ""},
		"PyTorch":        {onGPU(1, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of"), berth.FailureDeviceOOM, ""},
		"PyTorch, older": {onGPU(1, "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"), berth.FailureDeviceOOM, ""},
		"cuDNN alloc":    {onGPU(1, "CUDNN_STATUS_ALLOC_FAILED"), berth.FailureDeviceOOM, ""},
		"cuBLAS alloc":   {onGPU(1, "failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED"), berth.FailureDeviceOOM, ""},
		"PyTorch, a context or a kernel": {
			onGPU(1, traceback("RuntimeError: CUDA error: out of memory", "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.")...),
			berth.FailureDeviceOOM, "CUDA error: out of memory",
		},
		"PyTorch, expandable segments": {onGPU(1, traceback("RuntimeError: CUDA driver error: out of memory")...), berth.FailureDeviceOOM, ""},
		"PyTorch, a full GPU at its start": {
			with(onGPU(1, traceback("torch.AcceleratorError: CUDA error: out of memory")...), func(e *failure.Evidence) { e.Device.Stepped, e.Device.FreeBytes = false, 100*mib }),
			berth.FailureDeviceBusy, "waits for room",
		},
		"LightGBM":             {onGPU(1, "[LightGBM] [Fatal] [CUDA] out of memory /tmp/LightGBM/include/LightGBM/cuda/cuda_utils.hu 54"), berth.FailureDeviceOOM, ""},
		"CuPy's pool":          {onGPU(1, traceback("cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: 512 bytes).")...), berth.FailureDeviceOOM, ""},
		"CuPy":                 {onGPU(1, traceback("cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorMemoryAllocation: out of memory")...), berth.FailureDeviceOOM, ""},
		"RMM":                  {onGPU(1, traceback("MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /include/rmm/mr/device/cuda_memory_resource.hpp:70: cudaErrorMemoryAllocation out of memory")...), berth.FailureDeviceOOM, ""},
		"RMM's pool":           {onGPU(1, traceback("MemoryError: std::bad_alloc: out_of_memory: RMM failure at:/include/rmm/mr/device/pool_memory_resource.hpp:193: Maximum pool size exceeded")...), berth.FailureDeviceOOM, ""},
		"XLA under TensorFlow": {onGPU(1, traceback("tensorflow.python.framework.errors_impl.ResourceExhaustedError: Out of memory while trying to allocate 7516192768 bytes. [Op:__inference_one_step_on_data_1]")...), berth.FailureDeviceOOM, ""},
		"RMM's words, no GPU":  {failure.Evidence{ExitCode: 1, LogTail: traceback("MemoryError: std::bad_alloc: out_of_memory: CUDA error at: x.hpp:70: cudaErrorMemoryAllocation")}, berth.FailureUserError, "could not get memory"},
		"GPU full at start":    {with(onGPU(1, tfInit), func(e *failure.Evidence) { e.Device.Stepped = false }), berth.FailureDeviceBusy, "waits for room"},
		"its share is too small for a context": {
			with(onGPU(1, traceback("tensorflow.python.framework.errors_impl.InternalError: cudaSetDevice() on GPU:0 failed. Status: out of memory")...),
				func(e *failure.Evidence) { e.Device.Stepped, e.Device.Shared = false, true }),
			berth.FailureDeviceOOM, "retries with more",
		},
		"its share has no room for cuBLAS": {
			with(onGPU(1, noBLAS...), func(e *failure.Evidence) {
				e.Device.Shared, e.Device.LimitBytes, e.Device.PeakBytes = true, 700*mib, 520*mib
			}),
			berth.FailureDeviceOOM, "with 700 MiB reserved",
		},
		"its share has room for cuBLAS": {
			with(onGPU(1, noBLAS...), func(e *failure.Evidence) { e.Device.Shared, e.Device.PeakBytes = true, 1024*mib }),
			berth.FailureNeighbourFault, "failed although memory was free, its own fault or that of another trial",
		},
		"a GPU full of others, with a share": {
			with(onGPU(1, traceback("tensorflow.python.framework.errors_impl.InternalError: cudaSetDevice() on GPU:0 failed. Status: out of memory")...),
				func(e *failure.Evidence) {
					e.Device.Stepped, e.Device.Shared, e.Device.FreeBytes = false, true, 100*mib
				}),
			berth.FailureDeviceBusy, "waits for room",
		},
		"a context fits, cuBLAS does not": {
			with(onGPU(1, noBLAS...), func(e *failure.Evidence) { e.Device.Stepped = false; e.Device.FreeBytes = 100 * mib }),
			berth.FailureDeviceBusy, "waits for room",
		},
		"cuBLAS, and the GPU had room":   {onGPU(1, noBLAS...), berth.FailureCrashed, "CUDA and cuDNN fit the driver"},
		"GPU full before the first step": {with(onGPU(1, tfGPU), func(e *failure.Evidence) { e.Device.Stepped = false; e.Device.FreeBytes = 100 * mib }), berth.FailureDeviceBusy, "waits for room"},
		"a GPU full of others, by MPS, in the middle": {
			with(onGPU(1, tfGPU), func(e *failure.Evidence) {
				e.Device.Shared, e.Device.PeakBytes, e.Device.FreeBytes = true, 520*mib, 100*mib
			}),
			berth.FailureDeviceBusy, "full of what others hold",
		},
		"out of its own share before the first step": {
			with(onGPU(1, tfGPU), func(e *failure.Evidence) {
				e.Device.Stepped = false
				e.Device.PeakBytes = 1270 * mib
				e.Device.FreeBytes = 100 * mib
			}),
			berth.FailureDeviceOOM, "",
		},

		// Text that may mean several things.
		"ambiguous, room":         {onGPU(1, "CUDNN_STATUS_INTERNAL_ERROR"), berth.FailureCrashed, "fit the driver"},
		"ambiguous, device full":  {with(onGPU(1, "CUDNN_STATUS_EXECUTION_FAILED"), func(e *failure.Evidence) { e.Device.FreeBytes = 300 * mib }), berth.FailureDeviceOOM, "full"},
		"ambiguous, not measured": {with(onGPU(1, "No algorithm worked!"), func(e *failure.Evidence) { e.Device = failure.DeviceEvidence{Asked: true, Stepped: true} }), berth.FailureCrashed, ""},
		"warning alone":           {onGPU(1, tfWarn, "KeyError: 'x'"), berth.FailureUserError, "KeyError"},
		"warning and full":        {with(onGPU(1, tfWarn), func(e *failure.Evidence) { e.Device.FreeBytes = 300 * mib }), berth.FailureDeviceOOM, "735.56M"},

		// The GPU itself.
		"fell off the bus":      {with(onGPU(1, "CUDA_ERROR_UNKNOWN"), func(e *failure.Evidence) { e.Device.Problem = "XID 79: it fell off the bus" }), berth.FailureInfra, "XID 79"},
		"stopped on a lost GPU": {with(onGPU(137), func(e *failure.Evidence) { e.Intent = failure.IntentDevice }), berth.FailureInfra, "the GPU is lost"},

		// Neighbours under MPS.
		"whose fault, by MPS": {
			with(onGPU(1, "CUDA_ERROR_ILLEGAL_ADDRESS"), func(e *failure.Evidence) { e.Device.Shared = true }),
			berth.FailureNeighbourFault, "without neighbours by MPS; it said: CUDA_ERROR_ILLEGAL_ADDRESS",
		},
		"fault alone":                      {onGPU(1, "CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure"), berth.FailureCrashed, "of the program itself"},
		"MPS code":                         {byMPS(1, "cudaError 810"), berth.FailureNeighbourFault, "MPS server"},
		"MPS, its own fault":               {onGPU(1, "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered", "CUDA_ERROR_MPS_RPC_FAILURE"), berth.FailureCrashed, "of the program itself"},
		"MPS, too many":                    {onGPU(1, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED: too many clients"), berth.FailureDeviceBusy, "took no more processes"},
		"MPS server":                       {byMPS(1, "InternalError: CUDA error: CUDA_ERROR_MPS_SERVER_NOT_READY: the MPS server is not ready"), berth.FailureNeighbourFault, "runs it again"},
		"MPS server, and nobody beside it": {with(byMPS(1, serverGone), func(e *failure.Evidence) { e.Device.Alone = true }), berth.FailureInfra, "had the GPU to itself"},
		"MPS server, of a program that is no client": {onGPU(1, serverGone), berth.FailureCrashed, "Berth gave it none"},
		"a fault by MPS, and nobody beside it":       {with(byMPS(1, "CUDA_ERROR_ILLEGAL_ADDRESS"), func(e *failure.Evidence) { e.Device.Alone = true }), berth.FailureCrashed, "of the program itself"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			kind, message := failure.Classify(test.evidence)
			require.Equal(t, test.want, kind, message)
			require.Contains(t, message, test.says)
		})
	}
}

const serverGone = "InternalError: CUDA error: Failed synchronizing device: CUDA_ERROR_MPS_RPC_FAILURE: the MPS RPC server failed"

// byMPS is an attempt that shares its GPU by MPS with others.
func byMPS(exitCode int, lines ...string) failure.Evidence {
	return with(onGPU(exitCode, lines...), func(e *failure.Evidence) { e.Device.MPS, e.Device.Shared = true, true })
}

// TestClassify_FaultsOfAGPU has the frameworks' messages for a fault on their GPU: by
// MPS it may be a neighbour's, by time slices it is the program's own.
func TestClassify_FaultsOfAGPU(t *testing.T) {
	t.Parallel()

	for name, lines := range map[string][]string{
		"TensorFlow, address":        {"E0000 cuda_event.cc:49] Error polling for event status: failed to query event: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"},
		"TensorFlow, launch":         {"InternalError: CUDA error: Could not synchronize CUDA stream: CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure"},
		"PyTorch, address":           traceback("RuntimeError: CUDA error: an illegal memory access was encountered"),
		"PyTorch, assertion":         traceback("RuntimeError: CUDA error: device-side assert triggered"),
		"PyTorch, misaligned":        traceback("RuntimeError: CUDA error: misaligned address"),
		"JAX, assertion":             traceback("jax.errors.JaxRuntimeError: INTERNAL: CUDA error: CUDA_ERROR_ASSERT: device-side assert triggered"),
		"cuDNN after an address":     append([]string{"CUDA_ERROR_ILLEGAL_ADDRESS"}, traceback("RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED")...),
		"cuDNN alone":                traceback("RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
		"cuBLAS alone":               traceback("RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(...)`"),
		"aborted with the fault":     {"terminate called after throwing an instance of 'c10::Error'", "  what():  CUDA error: an illegal memory access was encountered"},
		"TensorFlow, aborted":        {"F0000 00:00:1764180000.000000    71 device_event_mgr.cc:223] Unexpected Event status: 1", "Aborted (core dumped)"},
		"CuPy, address":              traceback("cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorIllegalAddress: an illegal memory access was encountered"),
		"cuBLAS did not start alone": traceback("RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"),
		"the library's first words":  {"CUDNN_STATUS_INTERNAL_ERROR", "CUDA error: unspecified launch failure"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for _, code := range []int{1, 134} {
				kind, message := failure.Classify(byMPS(code, lines...))
				require.Equal(t, berth.FailureNeighbourFault, kind, message)
				require.Contains(t, message, "nobody can tell whose")
				require.False(t, failure.OwnDeviceFault(byMPS(code, lines...), kind))

				kind, message = failure.Classify(onGPU(code, lines...))
				require.Equal(t, berth.FailureCrashed, kind, message)
				require.Equal(t, !strings.HasSuffix(name, " alone"), failure.OwnDeviceFault(onGPU(code, lines...), kind), "a library alone may not fit the driver")
			}
		})
	}

	kind, message := failure.Classify(byMPS(1, traceback("cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorMpsClientTerminated: the MPS client has been terminated")...))
	require.Equal(t, berth.FailureNeighbourFault, kind, message)

	for name, lines := range map[string][]string{
		"prose":     {"checking whether an illegal access or a launch failure happens", "ValueError: no"},
		"its check": traceback("AssertionError: device-side checks are off"),
	} {
		kind, message := failure.Classify(byMPS(1, lines...))
		require.Equal(t, berth.FailureUserError, kind, "%s: %s", name, message)
	}
}

// What a neighbour's fault does to a program is not always said: it aborts, or fails with a
// segmentation fault in the driver. Alone the same is charged.
func TestClassify_CrashBesideOthersByMPS(t *testing.T) {
	t.Parallel()

	for _, code := range []int{134, 139} {
		beside := byMPS(code, "*** Check failure stack trace: ***", "    @     0x7f01  absl::SendToLog()")
		kind, message := failure.Classify(beside)
		require.Equal(t, berth.FailureNeighbourFault, kind, message)
		require.False(t, kind.Policy().Charges)
		require.Contains(t, message, fmt.Sprintf("crashed with signal %d (exit code %d), its own fault or that of another trial", code-128, code))

		for _, alone := range []failure.Evidence{
			with(beside, func(e *failure.Evidence) { e.Device.Alone = true }),
			with(beside, func(e *failure.Evidence) { e.Device.Shared = false }),
			with(beside, func(e *failure.Evidence) { e.Device = failure.DeviceEvidence{} }),
		} {
			kind, message := failure.Classify(alone)
			require.Equal(t, berth.FailureCrashed, kind, message)
			require.True(t, kind.Policy().Charges)
		}
	}

	kind, _ := failure.Classify(byMPS(136))
	require.Equal(t, berth.FailureCrashed, kind, "arithmetic on cores")
}

func TestOwnDeviceFault(t *testing.T) {
	t.Parallel()

	fault := onGPU(1, "CUDA_ERROR_ILLEGAL_ADDRESS")
	require.True(t, failure.OwnDeviceFault(fault, berth.FailureCrashed))
	require.False(t, failure.OwnDeviceFault(fault, berth.FailureInfra), "the GPU itself failed")
	require.False(t, failure.OwnDeviceFault(fault, berth.FailureCanceled))
	require.False(t, failure.OwnDeviceFault(onGPU(139), berth.FailureCrashed), "a segmentation fault is none of the GPU's")
	require.False(t, failure.OwnDeviceFault(onGPU(1, serverGone), berth.FailureCrashed))
}

func TestLongLineIsCut(t *testing.T) {
	t.Parallel()

	_, message := failure.Classify(failure.Evidence{ExitCode: 1, LogTail: []string{strings.Repeat("ä", 100_000)}})
	require.Less(t, len(message), 1000)
}

func evidence(t *rapid.T) failure.Evidence {
	lines := []string{tfGPU, tfCPU, tfInit, tfWarn, tfSoft, "", "CUDNN_STATUS_INTERNAL_ERROR", "MemoryError", "std::bad_alloc", "all well", noSpace}
	tail := rapid.SliceOf(rapid.OneOf(rapid.SampledFrom(lines), rapid.String())).Draw(t, "log")

	size := rapid.Int64Range(0, 4000*mib)

	e := failure.Evidence{
		Intent: rapid.SampledFrom([]failure.Intent{
			failure.IntentNone, failure.IntentNone, failure.IntentCancel, failure.IntentStop, failure.IntentTimeout, failure.IntentPrune,
			failure.IntentFlood, failure.IntentQuota,
		}).Draw(t, "intent"),
		ReportedKind: rapid.SampledFrom([]berth.FailureKind{"", "", berth.FailureDeviceOOM, berth.FailureHostOOM}).Draw(t, "reported"),
		OOMCause:     rapid.SampledFrom([]berth.OOMCause{"", berth.OOMLimit, berth.OOMMachine}).Draw(t, "cause"),
		Objective:    rapid.SampledFrom([]string{"", "loss"}).Draw(t, "objective"),
		ExitCode:     rapid.IntRange(0, 255).Draw(t, "exit"),
		LogTail:      tail,
		OldLines:     rapid.IntRange(0, len(tail)).Draw(t, "old lines"),
		OOMKills:     rapid.IntRange(0, 3).Draw(t, "kills"),
		Disk: failure.DiskEvidence{
			HeadroomBytes: 2000 * mib, FullBefore: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "full before")),
			Problem: rapid.SampledFrom([]string{"", "read-only"}).Draw(t, "disk problem"),
		},
	}

	for _, bytes := range []*int64{
		&e.PeakBytes, &e.MemoryLimitBytes, &e.Host.AvailableBytes, &e.Disk.FreeBytes, &e.Disk.LogFreeBytes, &e.Disk.FilledBytes,
		&e.Device.PeakBytes, &e.Device.LimitBytes, &e.Device.FreeBytes,
	} {
		*bytes = size.Draw(t, "bytes")
	}

	for _, fact := range []*bool{
		&e.OOMKilled, &e.OOMEvent, &e.BelowLimit, &e.LogTorn, &e.FromLog, &e.ReportedSince, &e.DaemonLost, &e.HasObjective, &e.Host.Measured,
		&e.Disk.Measured, &e.Disk.Missed, &e.Disk.LogUnseen, &e.Device.Asked, &e.Device.Measured, &e.Device.FreeMeasured,
		&e.Device.Stepped, &e.Device.MPS, &e.Device.Shared, &e.Device.Alone,
	} {
		*fact = rapid.Bool().Draw(t, "fact")
	}

	return e
}

func TestProperties(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		e := evidence(t)
		kind, message := failure.Classify(e)

		require.NotEmpty(t, kind)
		require.NotEmpty(t, message)

		again, _ := failure.Classify(e)
		require.Equal(t, kind, again)

		if e.ExitCode == 0 && e.Intent == failure.IntentNone {
			require.False(t, kind.OutOfMemory(), "exit 0 is never out of memory")
			require.NotEqual(t, berth.FailureDiskQuota, kind, "what ended well is not charged")

			lost := e.Objective != "" && (e.DaemonLost && !e.HasObjective || e.FromLog && e.LogTorn || e.Disk.Measured || e.Disk.LogUnseen) // its output may be
			require.Equal(t, lost && kind == berth.FailureInfra, kind.Policy().Next != berth.NextDone)
		}

		if e.Intent != failure.IntentNone {
			require.False(t, kind.OutOfMemory(), "what we stopped did not run out of memory")
		}

		if !e.Device.Asked {
			require.NotEqual(t, berth.FailureDeviceOOM, kind)
		}

		if e.Disk.FullBefore > failure.FailsWithin && e.Intent == failure.IntentNone {
			require.NotEqual(t, berth.FailureDiskQuota, kind, "its files filled the disk at another time")
		}

		near := berth.NearMemoryLimit(e.PeakBytes, e.MemoryLimitBytes)
		killed := e.OOMKilled || e.OOMEvent || e.OOMKills > 0

		if kind == berth.FailureHostOOM {
			own := e.ExitCode == 87 && e.ReportedKind != berth.FailureHostOOM
			require.True(t, killed || near || own, "text alone is no evidence, nor is an exception")
			require.True(t, own || e.OOMCause != berth.OOMMachine, "it is its own memory that ran out")
		}
	})
}

// A text that nearly every program prints is no reason.
func TestSaysNoGPU(t *testing.T) {
	t.Parallel()

	for line, want := range map[string]bool{
		"W dso_loader.cc:64] Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open shared object file: No such file or directory":     true,
		"W dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: cannot open shared object file: No such file or directory": false,
		"ImportError: libcublas.so.12: cannot open shared object file: No such file or directory":                                                                   true,
		"W gpu_device.cc:2342] Cannot dlopen some GPU libraries. Please make sure the missing libraries mentioned above are installed properly":                     true,
		"Epoch 1/5": false,
	} {
		require.Equal(t, want, failure.SaysNoGPU(line), line)
	}
}

// The message of a failure gives the reason, without the line of TensorFlow's source.
func TestClassify_QuotesWithoutPrefix(t *testing.T) {
	t.Parallel()

	for _, line := range []string{
		"E0000 00:00:1795592721.122289       7 cuda_platform.cc:52] failed call to cuInit: INTERNAL",
		"2026-11-25 08:12:01.123456: E external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:152] failed call to cuInit: INTERNAL",
		"failed call to cuInit: INTERNAL",
	} {
		e := onGPU(0)
		e.Device.PeakBytes, e.Device.Must, e.Device.NoGPU = 0, true, line
		_, message := failure.Classify(e)
		require.Contains(t, message, "(it said: failed call to cuInit: INTERNAL)", line)
	}
}

// An attempt without a result gets the findings, and the text to write.
func TestClassify_NoResult(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		evidence failure.Evidence
		want     string
	}{
		"another name": {
			failure.Evidence{Objective: "val_acc", Reported: []string{"loss", "val_accuracy", "val_accuracy_top5"}},
			"ended well but never reported \"val_acc\"; it reported \"loss\", \"val_accuracy\", \"val_accuracy_top5\"; did you mean `metric: val_accuracy`?",
		},
		"other names": {failure.Evidence{Objective: "f1", Reported: []string{"loss"}}, "ended well but never reported \"f1\"; it reported \"loss\"; set its metric to one of these"},
		"many names":  {failure.Evidence{Objective: "f1", Reported: []string{"a", "b", "c", "d", "e", "g", "h", "i", "j", "k"}}, `"i" and 2 more; set its metric`},
		"nothing":     {failure.Evidence{Objective: "f1"}, `it reported no metric: append lines such as {"epoch": 1, "f1": 0.5} to the file that TRIAL_METRICS_FILE names`},
		"a line that was not read": {
			failure.Evidence{
				Objective: "val_acc", FromLog: true, Reported: []string{"loss"},
				Near: failure.Near{Line: "val acc is 0.9", Pattern: `(?P<name>val acc) is (?P<value>\S+)`},
			},
			"the line \"val acc is 0.9\" was not read: print such as \"val_acc=0.5\", or set `metrics: {pattern: '(?P<name>val acc) is (?P<value>\\S+)'}`; it reported \"loss\"",
		},
		"a pattern of its own that finds others": {
			failure.Evidence{Objective: "val_acc", FromLog: true, OwnPattern: true, Reported: []string{"loss"}},
			"metrics.pattern found \"loss\" in what it printed: change the pattern, or leave it out",
		},
		"a pattern of its own, and nothing": {failure.Evidence{Objective: "val_acc", FromLog: true, OwnPattern: true}, "metrics.pattern found nothing in what it printed"},
		"of no training":                    {failure.Evidence{Objective: "accuracy", Reported: []string{"train_acc", "training accuracy", "test_acc", "val_acc"}}, "did you mean `metric: val_acc`?"},
		"more words":                        {failure.Evidence{Objective: "loss", Reported: []string{"KL loss", "total recon loss", "val kl_loss"}}, "did you mean `metric: KL loss`?"},
		"a letter is wrong, and it is none of the first names": {
			failure.Evidence{
				Objective: "val_axcuracy", FromLog: true,
				Reported: []string{"batch_size", "dropout", "epoch", "epochs", "hidden", "loss", "lr", "seed", "val_accuracy", "val_loss"},
			},
			`"seed" and 2 more; did you mean ` + "`metric: val_accuracy`?",
		},
		"a name that YAML reads as more": {failure.Evidence{Objective: "acc", Reported: []string{"best: acc"}}, "did you mean `metric: \"best: acc\"`?"},
		"nothing printed":                {failure.Evidence{Objective: "f1", FromLog: true}, `it printed nothing that reads as a metric: print such as "f1=0.5"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			kind, message := failure.Classify(c.evidence)
			require.Equal(t, berth.FailureNoResult, kind)
			require.Contains(t, message, c.want)
		})
	}
}

// A result that the program called final is not lost by a later failure.
func TestClassify_AFinalResultStands(t *testing.T) {
	t.Parallel()

	final := failure.Evidence{Objective: "acc", HasObjective: true, ObjectiveStatus: berth.MetricFinite, Final: true}
	failed := with(final, func(e *failure.Evidence) {
		e.ExitCode, e.LogTail = 1, traceback("OSError: [Errno 30] Read-only file system: 'm.keras'")
	})

	kind, message := failure.Classify(failed)
	require.Equal(t, berth.FailureOK, kind)
	require.Equal(t, `finished: its final "acc" stands; afterwards it failed (user_error, exit code 1): OSError: [Errno 30] Read-only file system: 'm.keras'`, message)

	for want, e := range map[berth.FailureKind]failure.Evidence{
		berth.FailureOK:        with(final, func(e *failure.Evidence) { e.ExitCode, e.OOMKilled = 137, true }),
		berth.FailureUserError: with(failed, func(e *failure.Evidence) { e.Final = false }),
		berth.FailureCanceled:  with(failed, func(e *failure.Evidence) { e.Intent = failure.IntentCancel }),
		berth.FailurePreempted: with(failed, func(e *failure.Evidence) { e.ExitCode = 75 }),
		berth.FailureNotFinite: with(final, func(e *failure.Evidence) { e.ObjectiveStatus = berth.MetricNaN }),
	} {
		kind, _ := failure.Classify(e)
		require.Equal(t, want, kind)
	}
}
