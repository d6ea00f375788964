package gpu

import (
	"fmt"
	"time"
)

// Event is something that went wrong on a card.
type Event struct {
	// UUID is the card, or the MIG device where the driver names one. Empty = the
	// driver could not say: then it may be any card.
	UUID string
	At   time.Time // when this process got it
	XID  int       // the driver's number of the error; 0 = no XID

	// UncorrectedECC: the memory lost data (a double bit error).
	UncorrectedECC bool
}

// Diagnosis is the meaning of an event for the GPU.
type Diagnosis struct {
	Sick    bool   // the card must take nothing new until a person has looked
	Meaning string // one sentence in plain words
}

// Diagnose says whether the card of an event is sick, and why.
func (e Event) Diagnose() Diagnosis {
	d := DiagnoseXID(e.XID)
	if e.UncorrectedECC && (e.XID == 0 || !d.Sick) {
		return Diagnosis{Sick: true, Meaning: "the GPU's memory lost data (uncorrected ECC error): reset the GPU, and replace it if this comes back"}
	}

	return d
}

// DiagnoseXID says whether a GPU with this XID is sick, and what the XID means.
// Only the XIDs of programFaults leave a GPU healthy: an unknown XID makes it
// sick. The split follows NVIDIA's k8s-device-plugin (internal/rm/health.go),
// the sentences NVIDIA's XID catalogue (docs.nvidia.com/deploy/xid-errors).
func DiagnoseXID(xid int) Diagnosis {
	if meaning, ok := programFaults[xid]; ok {
		return Diagnosis{Meaning: fmt.Sprintf("XID %d: %s", xid, meaning)}
	}

	meaning, ok := cardFaults[xid]
	if !ok {
		meaning = "the driver reports an error of the GPU: look it up in NVIDIA's XID catalogue"
	}

	return Diagnosis{Sick: true, Meaning: fmt.Sprintf("XID %d: %s", xid, meaning)}
}

// programFaults are the errors that a program causes. The card stays healthy.
var programFaults = map[int]string{
	13:  "the program read or wrote outside of its memory, or ran an illegal instruction",
	31:  "the program used an address of GPU memory that is not its own",
	43:  "the driver stopped the program after an error of its own; the GPU stays healthy",
	45:  "the driver removed the program's work, after an earlier error or because the program was killed",
	68:  "the video decoder stopped at an error of the program",
	109: "the program's work could not be switched out in time and was stopped",
}

// cardFaults are the common errors of the card, its driver or its machine.
var cardFaults = map[int]string{
	46:  "the GPU stopped answering: reset it",
	48:  "the GPU's memory lost data (uncorrected ECC error): reset the GPU",
	61:  "the GPU's own controller stopped: reset the GPU",
	62:  "the GPU's own controller stopped: reset the GPU",
	63:  "the GPU retires a part of its memory after an error: reset the GPU when it is idle",
	64:  "the GPU could not retire a bad part of its memory: reset the GPU, and replace it if this comes back",
	69:  "the GPU's compute engine failed: reset the GPU",
	74:  "the NVLink between GPUs failed: check the link, then reset the GPUs",
	79:  "the GPU fell off the bus, by heat, power or a bad slot: reboot the machine, and replace the GPU if this comes back",
	92:  "the GPU's memory has many corrected errors: watch it, and replace it if they go on",
	94:  "the GPU's memory lost data of one program (contained ECC error): reset the GPU when it is idle",
	95:  "the GPU's memory lost data and other programs may be hit (uncontained ECC error): reset the GPU now",
	119: "the GPU's system processor (GSP) does not answer the driver: reset the GPU or reboot the machine",
	120: "the GPU's system processor (GSP) failed: reset the GPU or reboot the machine",
	121: "the link between processor and GPU had an error: reset the GPU when it is idle",
	140: "the GPU's memory has an error that could not be mended: reset the GPU",
	143: "the GPU could not be started: reboot the machine",
	154: "the driver asks for an action on the GPU: run `nvidia-smi -q` and do what \"GPU Recovery Action\" says",
}
