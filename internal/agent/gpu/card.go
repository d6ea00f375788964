package gpu

import "time"

// Inventory is a machine's GPUs and driver.
type Inventory struct {
	DriverVersion string   // such as 580.159.04; empty = not known
	CUDAVersion   string   // newest version that the driver runs, such as 13.0; empty = not known
	Cards         []Card   // in the driver's order, MIG devices after their card; each UUID once
	Warnings      []string // missing parts and the user's next step, in plain words
}

// Card is one GPU, or one MIG device of a GPU in MIG mode.
type Card struct {
	UUID        string // as the driver and CDI write it: GPU-…, or MIG-… for a MIG device
	Index       string // the driver's number: 0, 1, …, or 0:2 for MIG device 2 of card 0; with gaps where one is lost or taken away
	Model       string // such as NVIDIA H200; of a MIG device, its card's
	Profile     string // of a MIG device, such as 1g.18gb; empty = a whole GPU
	Parent      string // UUID of the card that a MIG device is part of; empty = a whole GPU
	MemoryBytes int64  // total, with the driver's reserve
	Major       int    // of the compute capability, such as 9; 0 = not known

	// MIG says that MIG mode is on. Such a card takes nothing itself: its MIG
	// devices are cards of their own.
	MIG bool

	// Problem says why the card cannot be used, in plain words, and what to do;
	// empty = it can.
	Problem string
}

// Reading is the use of one GPU at one moment.
type Reading struct {
	At            time.Time
	TotalBytes    int64 // = ReservedBytes + UsedBytes + FreeBytes
	ReservedBytes int64 // by the driver, for itself; 0 = not known, and then in UsedBytes
	UsedBytes     int64 // by all processes
	FreeBytes     int64

	// Processes are the processes that compute on the GPU, by ascending PID,
	// each once.
	Processes []Process
	// ProcessesKnown: the driver lists processes here. When false, an empty list
	// proves nothing.
	ProcessesKnown bool
}

// Process is one process that computes on a card.
type Process struct {
	PID   int   // in the machine's PID namespace
	Bytes int64 // of the card's memory; 0 = not known. Managed memory counts in part only
	MPS   bool  // a client of NVIDIA's Multi-Process Service (type M+C in nvidia-smi)
}

// Activity is how busy one card was from From to To, by GPM (Hopper or newer), as shares from
// 0 to 1. On a card without GPM nothing is known, and From is the zero time. What nvidia-smi calls utilisation
// overstates load: 0.97 where SMActivity was 0.07 (one H200, 12 small trials, 2026-11-21).
type Activity struct {
	From, To      time.Time
	SMActivity    float64 // share of time that an SM had work, averaged over the SMs
	Tensor        float64 // share of time that a tensor core was in use
	DRAMBandwidth float64 // of the most that the card's memory can carry
}
