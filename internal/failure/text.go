package failure

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// maxQuote is how many characters of the log a message quotes.
const maxQuote = 300

// noSpace matches programs' texts for ENOSPC: Go's in small letters.
const noSpace = `\[Errno 28\]|(?i:no space left on device)`

// readOnly matches programs' texts for EROFS.
const readOnly = `\[Errno 30\]|Read-only file system`

// Texts of frameworks. Each is the framework's own error, not a word that a
// program may print in passing.
var (
	// killedSigns: the kernel killed a process of the program, says its parent.
	killedSigns = compile(`DataLoader worker \(pid.*\) is killed by signal: Killed`)

	// refusedSigns: an allocation was refused. A container at its limit is killed
	// and refused nothing, so these count only with a peak near the limit: alone,
	// the program asked for more at once than any machine has.
	refusedSigns = compile(
		`^(?:[\w.]+\.)?_?(?:Array)?MemoryError\b`, // Python, numpy; at the start of a line: an exception, not prose
		`\bstd::bad_alloc\b`,
		`DefaultCPUAllocator: can't allocate memory`, // PyTorch
		`OOM when allocating tensor.*device:CPU`,
		`OOM when allocating tensor.*by allocator (?:mkl)?cpu`,
	)

	// noSpaceSigns: a file system was full.
	noSpaceSigns = compile(noSpace)

	// readOnlySigns: a file system that takes no files was to take one of the trial's.
	readOnlySigns = compile(`(?:` + readOnly + `).*/trial/(?:out|checkpoint)\b`)

	// ownMemory are the file systems in memory that a trial has to itself.
	ownMemory = compile(`/dev/shm\b|/tmp\b`)

	deviceOOMSigns = compile(
		`OOM when allocating tensor.*(?:device:GPU|GPU_\d+_bfc)`,
		`Dst tensor is not initialized`,
		`EigenAllocator for GPU ran out of memory`,
		`(?:JaxRuntimeError|XlaRuntimeError).*RESOURCE_EXHAUSTED`,
		`RESOURCE_EXHAUSTED: Out of memory while trying to allocate`,
		`torch\.(?:cuda\.)?OutOfMemoryError`,
		`CUDA out of memory\. Tried to allocate`,
		`CUDA (?:driver )?error: out of memory`,            // PyTorch outside its caching allocator: a context, a kernel, pinned memory
		`cudaErrorMemoryAllocation`,                        // XGBoost, CuPy, Thrust; also in std::bad_alloc
		`\[CUDA\] out of memory`,                           // LightGBM
		`\bcupy\.\S*OutOfMemoryError`,                      // CuPy's own pool
		`out_of_memory: (?:CUDA error|RMM failure)\b`,      // RMM, as a MemoryError with std::bad_alloc
		`Out of memory while trying to allocate \d+ bytes`, // XLA under TensorFlow
		`CU(?:DNN|BLAS)_STATUS_ALLOC_FAILED`,
	)

	// deviceFullSigns: the GPU was full when the framework first touched it.
	deviceFullSigns = compile(
		`cuDevicePrimaryCtxRetain.*CUDA_ERROR_OUT_OF_MEMORY`,
		`cudaSetDevice\(\) on GPU:\d+ failed\. Status: out of memory`, // TensorFlow 2.21 with 300 MiB free
	)

	// ambiguousSigns: a full GPU, or a broken driver.
	ambiguousSigns = compile(
		`CUDNN_STATUS_INTERNAL_ERROR`,
		`CU(?:DNN|BLAS)_STATUS_NOT_INITIALIZED`,
		`CU(?:DNN|BLAS)_STATUS_EXECUTION_FAILED`,
		`DNN library initialization failed`,
		`No algorithm worked!`,
		`failed to create cublas handle`, // TensorFlow 2.21 with 700 MiB free: a context fits, the library does not
		`No blas support for stream`,
		`(?i)cusolver.*(?:internal error|INTERNAL_ERROR)`,
	)

	// noGPUSigns are the messages of TensorFlow, JAX, PyTorch and the dynamic loader when
	// they find no GPU, or lack a library for it. TensorFlow named the library until
	// 2.10.
	noGPUSigns = compile(
		`Could not load dynamic library 'lib(?:cu|nccl|nvrtc)`, // not libnvinfer, which is missing nearly everywhere
		`Cannot dlopen some GPU libraries`,
		`Could not find cuda drivers`,
		`failed call to cuInit`,
		`An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed`,
		`CUDA initialization: `,
		`\blib(?:cu|nccl|nvrtc)\w*\.so[.\d]*: cannot open shared object file`,
	)

	// allocatorWarnings are harmless alone: TensorFlow tries a smaller piece or
	// another algorithm and goes on. They count when the GPU was full.
	allocatorWarnings = compile(
		`failed to allocate .* from device: (?:CUDA_ERROR_OUT_OF_MEMORY|RESOURCE_EXHAUSTED)`,
		`Allocator \(GPU_\d+_bfc\) ran out of memory trying to allocate`,
	)

	// serverSigns: the MPS server is gone, or ended the process. If Berth itself
	// ends one, it records the reason before.
	serverSigns = compile(
		`CUDA_ERROR_MPS_(?:RPC_FAILURE|SERVER_NOT_READY|CLIENT_TERMINATED)`,
		`\bcudaErrorMps(?:RpcFailure|ServerNotReady|ClientTerminated)\b`, // CuPy names it
		`\bcudaError(?:Mps\w+)?\D{0,3}(?:80[67]|810)\b`,
	)

	// fullServerSigns: the MPS daemon let the process not in.
	fullServerSigns = compile(
		`CUDA_ERROR_MPS_(?:CONNECTION_FAILED|MAX_\w+)`,
		`\bcudaErrorMps(?:ConnectionFailed|Max\w+)\b`,
		`\bcudaError(?:Mps\w+)?\D{0,3}80[589]\b`,
	)

	// faultSigns are faults of a program on its GPU, which reach every client of an MPS
	// server: CUresult and cudaError_t 714 to 719 and 710, by name and in words (cuda.h,
	// driver_types.h). PyTorch says only the words, mostly after "CUDA error: ".
	faultSigns = compile(
		`CUDA_ERROR_(?:ILLEGAL_ADDRESS|LAUNCH_FAILED|ASSERT|MISALIGNED_ADDRESS|ILLEGAL_INSTRUCTION|INVALID_PC|INVALID_ADDRESS_SPACE|HARDWARE_STACK_ERROR)\b`,
		`\bcudaError(?:IllegalAddress|LaunchFailure|Assert|MisalignedAddress|IllegalInstruction|InvalidPc|InvalidAddressSpace|HardwareStackError)\b`,
		`an illegal (?:memory access|instruction) was encountered`,
		`CUDA error: (?:device-side assert triggered|misaligned address|invalid program counter|hardware stack error)`,
		`unspecified launch failure`,
		`Unexpected Event status: \d`, // TensorFlow, before it aborts; another line describes the fault
		`CUDA error: operation not supported on global/shared address space`,
	)

	// cardSigns are the messages of a program whose GPU has failed: CUresult and
	// cudaError_t 214 and 46, by name and in words. They are the only sign for a worker
	// that was down then.
	cardSigns = compile(
		`CUDA_ERROR_(?:ECC_UNCORRECTABLE|DEVICE_UNAVAILABLE)\b`,
		`\bcudaError(?:ECCUncorrectable|DevicesUnavailable)\b`,
		`uncorrectable ECC error encountered`,
		`CUDA-capable device\(s\) is/are busy or unavailable`,
	)
)

func compile(patterns ...string) []*regexp.Regexp {
	compiled := make([]*regexp.Regexp, 0, len(patterns))
	for _, p := range patterns {
		compiled = append(compiled, regexp.MustCompile(p))
	}

	return compiled
}

// recentOnly is the evidence without messages older than FailsWithin before the
// end: the program survived these. The last message stays.
func (e Evidence) recentOnly() Evidence {
	old := max(min(e.OldLines, len(e.LogTail)-1), 0)
	e.LogTail, e.OldLines = e.LogTail[old:], e.OldLines-old

	return e
}

// SaysNoGPU reports whether a line of the log says why a framework finds no GPU.
func SaysNoGPU(line string) bool { return has(line, noGPUSigns) }

// find returns the last line of the log with one of the signs, to be quoted.
func (e Evidence) find(signs []*regexp.Regexp) string { return e.findWithout(signs, nil) }

// findWithout is find, among the lines with none of the other signs.
func (e Evidence) findWithout(signs, others []*regexp.Regexp) string {
	for _, line := range slices.Backward(e.LogTail) {
		if has(line, signs) && !has(line, others) {
			return quote(line)
		}
	}

	return ""
}

func has(line string, signs []*regexp.Regexp) bool {
	return slices.ContainsFunc(signs, func(sign *regexp.Regexp) bool { return sign.MatchString(line) })
}

// logPrefix is TensorFlow's prefix of a message: time, severity, thread, file and line.
var logPrefix = regexp.MustCompile(`^(?:[\d-]{10} [\d:.]+: )?[IWEF](?:\d{4} [\d:.]+ +\d+)? \S+\.(?:cc|h):\d+\] *`)

// quote makes a line of a program's output fit for a message.
func quote(line string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return -1
		}

		return r
	}, strings.ToValidUTF8(line, ""))

	clean = strings.TrimSpace(clean)
	if inside, boxed := strings.CutPrefix(clean, "│"); boxed { // by Rich, as wide as its terminal
		clean = strings.TrimSpace(strings.TrimSuffix(inside, "│"))
	}

	runes := []rune(logPrefix.ReplaceAllString(clean, ""))
	if len(runes) > maxQuote {
		return string(runes[:maxQuote]) + "…"
	}

	return string(runes)
}
