//go:build cgo && linux

package nvml

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/gpu"
)

// defaultLibrary is the name under which every NVIDIA driver for Linux installs
// NVML; go-nvml uses the same.
const defaultLibrary = "libnvidia-ml.so.1"

// symbols are all functions of the library that this package can come to call,
// by the names that go-nvml binds. It takes the newest version of a function that
// the library has (updateVersionedSymbols in its lib.go), else the first one,
// whose name has no number.
var symbols = []string{
	"nvmlInit_v2", "nvmlInit", "nvmlShutdown",
	"nvmlSystemGetDriverVersion", "nvmlSystemGetCudaDriverVersion_v2",
	"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount",
	"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex",
	"nvmlDeviceGetHandleByUUID", "nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetCudaComputeCapability",
	"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo",
	"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses",
	"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2", "nvmlDeviceGetMPSComputeRunningProcesses",
	"nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex",
	"nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet", "nvmlGpmSampleFree",
	"nvmlEventSetCreate", "nvmlDeviceGetSupportedEventTypes", "nvmlDeviceRegisterEvents",
	"nvmlEventSetWait_v2", "nvmlEventSetWait", "nvmlEventSetFree",
}

// library is NVIDIA's library and its functions. It does not change once made.
type library struct {
	api nvml.Interface
	has map[string]bool
}

// bound are the opened libraries of this process by path. go-nvml keeps its
// bindings in variables of its package: a second instance of the same library
// would write them while the first one reads.
var bound struct {
	mu     sync.Mutex
	byPath map[string]*library
}

// bind opens the library and looks its functions up. It calls none.
// Errors: ErrNoDriver (not_found).
func bind(path string) (*library, error) {
	bound.mu.Lock()
	defer bound.mu.Unlock()

	if l := bound.byPath[path]; l != nil {
		return l, nil
	}

	// go-nvml opens the library and calls nvmlInit in one step: it is opened here
	// first, to see whether there is an nvmlInit, and why it cannot be opened. It
	// is never closed again, since go-nvml's bound functions would point nowhere.
	file := dl.New(path, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	if err := file.Open(); err != nil {
		return nil, berth.Errorf(berth.KindNotFound, "opening NVIDIA's library: %w (%w): "+
			"install the NVIDIA driver, or give this process its files, as NVIDIA's Container Toolkit does for containers", gpu.ErrNoDriver, err)
	}

	l := &library{api: nvml.New(nvml.WithLibraryPath(path)), has: make(map[string]bool, len(symbols))}
	for _, name := range symbols {
		l.has[name] = file.Lookup(name) == nil
	}

	if bound.byPath == nil {
		bound.byPath = make(map[string]*library)
	}

	bound.byPath[path] = l

	return l, nil
}

// load opens the library and starts it. Nothing may be called on a library that
// failed to start. Errors: as of bind and call.
func load(path string) (*library, error) {
	if path == "" {
		path = defaultLibrary
	}

	l, err := bind(path)
	if err != nil {
		return nil, err
	}

	if err := l.do("starting NVIDIA's library", l.api.Init, "nvmlInit_v2", "nvmlInit"); err != nil {
		return nil, err
	}

	return l, nil
}

// hasAny reports whether the library has one of these functions.
func (l *library) hasAny(names ...string) bool {
	for _, name := range names {
		if l.has[name] {
			return true
		}
	}

	return false
}

// call calls a function of the library when the library has it. names are the
// versions of that function; one is enough. Errors: as of refusal;
// ErrUnsupported (invalid) when the library lacks it.
func call[T any](l *library, doing string, function func() (T, nvml.Return), names ...string) (T, error) {
	if !l.hasAny(names...) {
		var none T

		return none, berth.Errorf(berth.KindInvalid, "%s: %w: the NVIDIA driver's library has no %s: install a newer NVIDIA driver",
			doing, gpu.ErrUnsupported, names[0])
	}

	value, code := function()

	return value, refusal(code, doing)
}

// do is call for a function that returns a code only.
func (l *library) do(doing string, function func() nvml.Return, names ...string) error {
	_, err := call(l, doing, func() (struct{}, nvml.Return) { return struct{}{}, function() }, names...)

	return err
}

// refusal is a return code as an error; nil for success. The code's own text is
// never asked for: it is one more function of the library, nvmlErrorString.
func refusal(code nvml.Return, doing string) error {
	switch code {
	case nvml.SUCCESS:
		return nil
	case nvml.ERROR_NOT_FOUND, nvml.ERROR_INVALID_ARGUMENT, nvml.ERROR_GPU_NOT_FOUND:
		return berth.Errorf(berth.KindNotFound, "%s: the NVIDIA driver knows no such GPU: `nvidia-smi -L` lists them", doing)
	case nvml.ERROR_GPU_IS_LOST:
		return berth.Errorf(berth.KindUnavailable, "%s: %w: it fell off the bus or stopped answering: look for XID lines in `dmesg`, "+
			"then reset the GPU or reboot the machine", doing, gpu.ErrLost)
	case nvml.ERROR_RESET_REQUIRED:
		return berth.Errorf(berth.KindUnavailable, "%s: %w until it is reset: run `nvidia-smi --gpu-reset` when nothing uses it", doing, gpu.ErrLost)
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_DEPRECATED:
		return berth.Errorf(berth.KindInvalid, "%s: %w by this GPU or this version of the NVIDIA driver", doing, gpu.ErrUnsupported)
	case nvml.ERROR_NO_PERMISSION, nvml.ERROR_OPERATING_SYSTEM:
		return berth.Errorf(berth.KindInvalid, "%s: no permission: run the worker as root, or let it open /dev/nvidia* (in a container, give it the GPUs)", doing)
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return berth.Errorf(berth.KindUnavailable, "%s: the NVIDIA driver is installed and not loaded: run `modprobe nvidia`, and see `dmesg` if that fails", doing)
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return berth.Errorf(berth.KindUnavailable, "%s: the NVIDIA driver was replaced while its old version runs: reboot the machine", doing)
	case nvml.ERROR_INSUFFICIENT_POWER:
		return berth.Errorf(berth.KindUnavailable, "%s: the GPU's power cables are not attached: attach them and reboot the machine", doing)
	case nvml.ERROR_IRQ_ISSUE:
		return berth.Errorf(berth.KindUnavailable, "%s: the GPU's interrupts do not arrive: see `dmesg`, and reboot the machine", doing)
	case nvml.ERROR_IN_USE:
		return berth.Errorf(berth.KindUnavailable, "%s: %w: try again", doing, errInUse)
	case nvml.ERROR_TIMEOUT, nvml.ERROR_MEMORY, nvml.ERROR_INSUFFICIENT_RESOURCES, nvml.ERROR_NOT_READY:
		return berth.Errorf(berth.KindUnavailable, "%s: the NVIDIA driver is busy or short of memory (return code %d): try again", doing, int32(code))
	case nvml.ERROR_UNINITIALIZED:
		return berth.Errorf(berth.KindInternal, "%s: NVIDIA's library is not started", doing)
	default:
		return berth.Errorf(berth.KindInternal, "%s: the NVIDIA driver failed (return code %d): see `dmesg`", doing, int32(code))
	}
}

// errInUse: another program does just that with the card. Only one at a time can
// sample its activity (one H200, driver 580, 2026-11-23).
var errInUse = errors.New("another program is at it")

// signed is a count of bytes as Berth's types have it.
func signed(bytes uint64) int64 {
	return int64(min(bytes, math.MaxInt64))
}

// The functions of cards, each with its guard. of says which card, for people.

func (l *library) handle(uuid string) (nvml.Device, error) {
	return call(l, fmt.Sprintf("finding GPU %q", uuid), func() (nvml.Device, nvml.Return) { return l.api.DeviceGetHandleByUUID(uuid) },
		"nvmlDeviceGetHandleByUUID")
}

// cards returns how many cards the machine has. MIG devices do not count.
func (l *library) cards() (int, error) {
	return call(l, "counting GPUs", l.api.DeviceGetCount, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")
}

func (l *library) card(index int) (nvml.Device, error) {
	return call(l, fmt.Sprintf("finding GPU %d", index), func() (nvml.Device, nvml.Return) { return l.api.DeviceGetHandleByIndex(index) },
		"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex")
}

func (l *library) uuid(d nvml.Device, of string) (string, error) {
	return call(l, "reading the UUID of "+of, d.GetUUID, "nvmlDeviceGetUUID")
}

func (l *library) name(d nvml.Device, of string) (string, error) {
	return call(l, "reading the model of "+of, d.GetName, "nvmlDeviceGetName")
}
