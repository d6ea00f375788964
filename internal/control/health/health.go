package health

import (
	"fmt"
	"strings"
	"time"

	"github.com/berthml/berth"
)

// State is what the ledger says of Berth's parts at one moment.
type State struct {
	OutboxWaiting   int                  // messages that Temporal was not told yet
	OutboxOldest    time.Duration        // how long the oldest waits
	OutboxReason    string               // why one of them was not delivered at its last try; empty when none has failed
	NoPlacer        bool                 // no process holds the placer's lock: nothing new starts
	PlacerReason    string               // why the asked process cannot hold it; empty when it does not try
	Hosts           int                  // all that ever were
	Answering       int                  // of them, those heard of within HostLostAfter
	SilentHosts     []string             // names of the others that hold leases; one that was retired holds none
	Simulated       []string             // names of hosts that answer and have simulated GPUs
	Unready         []string             // hosts that answer and take no attempts, such as "a: Docker does not answer"
	SickDevices     []string             // GPUs of hosts that answer that take no trials, such as "a, GPU-1: XID 79: …"
	Sliced          []string             // the same of GPUs that take no clients of MPS, though they should
	NotHandedOut    []string             // the same of GPUs that their worker does not hand out since it started
	StartingMPS     []string             // the same of GPUs whose MPS daemon is started again
	CordonedDevices []string             // the same of GPUs that a person has cordoned
	FullDisks       []string             // names of hosts that answer and whose disk is nearly full
	Outputs         []string             // files that hosts should remove and do not, such as "a: …"
	WaitingFiles    []berth.WaitingFiles // files of ended attempts that are not in the store yet, by host
	Secrets         int                  // stored secrets
	Unopened        []string             // secrets that a host cannot open although it should, such as "hub: no machine opens it"
	Retention       string               // what a server cannot delete although it is over its limit, and why; empty = nothing
	Disks           []Disk               // of the hosts that answer
	Database        Storage              // what the database takes
	DatabaseDisk    Disk                 // where it is on this machine; zero = elsewhere, or not known
	Connections     []ConnectionUse      // of the database, by limit; empty = not known
	Admins          AdminTokens          // who may make tokens
	SuspectLeases   int                  // not renewed in time; they keep what they hold (rule R3)
	Cordoned        []string             // hosts that fail to start containers: name and last failure of each
	Stuck           []StuckTrial         // trials whose request for a place is set aside, longest first; the first few
	StuckTrials     int                  // all of them
	Alarm           string               // what only a person can decide, see Installation; empty = nothing

	FailingRounds map[string]string // since when and why rounds of the server fail, by part; no key = they do not
}

// DatabaseDisk is the name of the database's disk in texts.
const DatabaseDisk = "the disk of the database"

// Storage is the database's use of its disk, in bytes.
type Storage struct {
	Bytes       int64  // the whole disk; 0 = not known
	LogBytes    int64  // of it, logs; 0 = not known
	MetricBytes int64  // of it, metric points; 0 = not known
	Dir         string // of a PostgreSQL that was reached on this machine; empty = elsewhere, or not known
}

// StuckTrial is a trial that waits although there may be room for it.
type StuckTrial struct {
	SweepID   string
	SweepName string
	Number    int    // of the trial
	Reason    string // in plain words
}

func (t StuckTrial) String() string {
	return fmt.Sprintf("trial %d of sweep %s (%s): %s", t.Number, t.SweepName, t.SweepID, t.Reason)
}

// Finding is one line about a part: fine, or the problem and the next step.
type Finding struct {
	OK   bool   `json:"ok"`
	Warn bool   `json:"warn,omitempty"` // ok, and will not be before long
	Part string `json:"part"`           // such as "outbox"
	What string `json:"what"`           // observation
	Next string `json:"next,omitempty"` // the user's next step; empty when ok without a warning
}

// Fine is an observation that needs nothing.
func Fine(part, what string) Finding { return Finding{OK: true, Part: part, What: what} }

// Broken is an observation that needs the user's next step.
func Broken(part, what, next string) Finding { return Finding{Part: part, What: what, Next: next} }

// warned is an observation that is fine, and will not be before long.
func warned(part, what, next string) Finding {
	return Finding{OK: true, Warn: true, Part: part, What: what, Next: next}
}

// because adds why the last try failed, where that is known.
func because(what, did, reason string) string {
	if reason == "" {
		return what
	}

	return what + "; the last try" + did + " failed: " + reason
}

// outboxLate is when the outbox is late: it is delivered within milliseconds,
// and a message that failed is tried again within a minute.
const outboxLate = 2 * time.Minute

// FreeDisk says how to free space on a host without harm. It leaves out commands
// that remove all unused images or ended containers: a paused sweep may pin such
// an image, under a tag that has moved on, and an ended container may hold an
// unread result.
const FreeDisk = "free space there: `docker builder prune`, `docker container prune --filter label!=berth.instance`, " +
	"outputs of old sweeps; keep the images of sweeps that have not ended, and Berth's own containers"

// alarmNext is the user's next step after an alarm.
const alarmNext = "bring back the Temporal that has the workflows (its address, namespace or backup), and Berth goes on by itself; " +
	"or run `berth restore`, and the open sweeps go on in this Temporal from what the database knows"

// Findings says it in words, one line for each part, always in this order.
func (h State) Findings() []Finding {
	outbox := Fine(PartOutbox, fmt.Sprintf("%d messages wait for Temporal", h.OutboxWaiting))
	if h.OutboxOldest > outboxLate {
		outbox = Broken(PartOutbox, because(fmt.Sprintf("%s, the oldest for %s", outbox.What, h.OutboxOldest.Round(time.Second)), "", h.OutboxReason),
			"see whether Temporal answers and a `berth server` runs; the log of the server says why it cannot deliver")
	}

	placer := Fine(PartPlacer, "one server places trials")
	if h.NoPlacer {
		placer = Broken(PartPlacer, because("no server places trials: nothing new starts, what runs goes on", " to lead", h.PlacerReason),
			"start `berth server`, or see its log for why it does not lead")
	}

	hosts := Finding{OK: true, Part: "hosts", What: fmt.Sprintf("%d of %d hosts answer", h.Answering, h.Hosts)}

	if len(h.Simulated) > 0 {
		hosts.What += "; with simulated GPUs: " + strings.Join(h.Simulated, ", ")
	}

	switch {
	case h.Answering == 0:
		hosts.OK, hosts.Next = false, "start `berth worker` on a machine with Docker: nothing can run"
	case len(h.SilentHosts) > 0:
		hosts.OK = false
		hosts.What += "; not heard of, and holding places: " + strings.Join(h.SilentHosts, ", ")
		hosts.Next = "start `berth worker` there again: it finds its containers; until then what the host holds stays booked. " +
			"When the machine is gone for good, `berth host remove` frees it"
	}

	if len(h.Unready) > 0 {
		hosts.OK = false
		hosts.What += "; answering, but taking no attempts: " + strings.Join(h.Unready, ", ")
		hosts.Next = strings.TrimPrefix(hosts.Next+"; ", "; ") + "restore what the host lacks: it takes attempts again by itself, and its worker needs no restart"
	}

	leases := Fine("leases", "every lease was renewed in time")
	if h.SuspectLeases > 0 {
		leases = Broken("leases", fmt.Sprintf("%d leases were not renewed in time and keep what they hold", h.SuspectLeases),
			"bring their host's worker back, which renews them or proves that nothing runs; `berth host list` says which is silent")
	}

	events := Fine(PartEvents, "a server publishes what happens")

	return h.markFailingRounds([]Finding{outbox, placer, events, hosts, h.devices(), h.disks(), h.outputs(), h.artifacts(), h.secrets(), h.retention(), h.storage(), h.connections(), h.tokens(), leases, h.starts(), h.requests(), h.alarm()})
}

// LessOutput is the user's next step for a disk that fills with outputs.
const LessOutput = "delete sweeps that are not needed with `berth sweep delete`, or limit what is kept: `berth worker --keep-outputs-size`, " +
	"`berth server --keep-outputs`; or " + FreeDisk

// lessData is what a person does about a database that fills its disk.
const lessData = "delete sweeps that are not needed with `berth sweep delete`, or limit how long they are kept: `berth server --keep-sweeps`; " +
	"PostgreSQL uses the freed space for new rows. `VACUUM FULL` of a table gives it back to the disk, but needs room for a copy of what is left of " +
	"the table, and trials wait meanwhile to store their metrics or logs there"

// databaseRoom is the space that PostgreSQL needs to go on: it writes its log
// in files of 16 MiB (wal_segment_size).
const databaseRoom = 16 << 20

// fullDatabase is the user's next step for a full disk of the database.
const fullDatabase = "free space on that disk or make it larger: PostgreSQL cannot write, and to delete sweeps needs room, too. Trials that run go on, and " +
	"their results wait on their hosts. After that limit how long sweeps are kept: `berth server --keep-sweeps`"

// disks is the finding about the disks of hosts.
func (h State) disks() Finding {
	if len(h.FullDisks) > 0 {
		return Broken("disks", "less is free than the hosts keep: "+strings.Join(h.FullDisks, ", "), FreeDisk+"; they start nothing new until then, and go on by themselves")
	}

	var warnings []string

	for _, disk := range h.Disks {
		if warning := disk.Warning(); warning != "" {
			warnings = append(warnings, warning)
		}
	}

	if len(warnings) == 0 {
		return Fine("disks", "every host has room for files")
	}

	return warned("disks", strings.Join(warnings, "; "), LessOutput)
}

// outputs is the finding about files that should be removed and are not. Nothing
// fails of it before the disk is full, which is told of the disk.
func (h State) outputs() Finding {
	if len(h.Outputs) == 0 {
		return Fine("outputs", "hosts remove the files that they are asked to")
	}

	return warned("outputs", strings.Join(h.Outputs, "; "),
		"what a worker cannot remove, remove there as root: `rm -r` the directory that is named, which only its job's user or root can "+
			"empty, and the worker goes on. For a limit that cannot be kept, delete sweeps that hold the files, after `berth sweep cancel` where they go on, "+
			"or raise --keep-outputs-size. When a host is gone for good, remove its data directory by hand, then run `berth host remove`")
}

// filesLate is when files that wait for the store are late without a fault that
// was seen: 10 GiB take some minutes.
const filesLate = time.Hour

// artifacts is the finding about files that wait for the store. No trial fails of it.
func (h State) artifacts() Finding {
	f := Finding{OK: true, Part: "artifacts", What: "no files wait for the store"}

	var texts []string

	for _, w := range h.WaitingFiles {
		texts = append(texts, because(fmt.Sprintf("%s: files of %d attempts, the oldest for %s", w.Host, w.Attempts, w.Oldest.Round(time.Second)), "", w.Problem))
		f.Warn = f.Warn || w.Problem != "" || w.Oldest > filesLate
	}

	if len(texts) > 0 {
		f.What = "wait for the store: " + strings.Join(texts, "; ")
	}

	if f.Warn {
		f.Next = "see there with `berth doctor --artifacts` and the worker's log why the store takes them not; trials go on, the files stay on their hosts, " +
			"and workers try again by themselves. When a host is gone for good, `berth host remove`"
	}

	return f
}

// secrets is the finding about secrets that no trial can have.
func (h State) secrets() Finding {
	f := Finding{OK: true, Part: "secrets", What: "no secrets are stored"}

	switch {
	case len(h.Unopened) > 0:
		f.Warn, f.What = true, strings.Join(h.Unopened, "; ")
		f.Next = "start the worker with --secrets-key and a file that holds the private key that `berth secret list` names, " +
			"or store the secret again with `berth secret set`; trials that mount it wait until then"
	case h.Secrets > 0:
		f.What = fmt.Sprintf("machines open all of the %d secrets", h.Secrets)
	}

	return f
}

// retention is the finding about rows that should be deleted and are not.
func (h State) retention() Finding {
	if h.Retention == "" {
		return Fine("retention", "the server deletes what is over its limit")
	}

	return warned("retention", "not deleted: "+h.Retention,
		"the server tries again every minute; when it lasts, see in PostgreSQL's pg_stat_activity and pg_locks what holds its tables, or report the reason")
}

// storage is the finding about the size of the database.
func (h State) storage() Finding {
	f := Finding{OK: true, Part: "storage", What: "the size of the database is not known"}
	if h.Database.Bytes > 0 {
		f.What = "the database takes " + berth.BytesText(h.Database.Bytes)
	}

	if h.Database.LogBytes > 0 && h.Database.MetricBytes > 0 {
		f.What += fmt.Sprintf(": logs %s, metrics %s", berth.BytesText(h.Database.LogBytes), berth.BytesText(h.Database.MetricBytes))
	}

	if disk := h.DatabaseDisk; disk.TotalBytes > 0 && disk.FreeBytes < databaseRoom {
		return Finding{Part: f.Part, What: disk.Of + " is full: " + berth.BytesText(disk.FreeBytes) + " are free; " + f.What, Next: fullDatabase}
	}

	if warning := h.DatabaseDisk.Warning(); warning != "" {
		f.Warn, f.What, f.Next = true, warning+"; "+f.What, lessData
	}

	return f
}

// devices is the finding about GPUs. That a person has cordoned one is no fault.
func (h State) devices() Finding {
	f := h.faultyDevices()
	if len(h.CordonedDevices) > 0 {
		f.What += "; taking no new trials: " + strings.Join(h.CordonedDevices, "; ")
	}

	return f
}

// faultyDevices is the finding about GPUs that are out of order. Only a sick one is a
// fault: time slices are slower than MPS, and nothing fails of them; a daemon starts in
// seconds; and a GPU that its worker hands out no more is mostly a person's wish.
func (h State) faultyDevices() Finding {
	var what, next []string

	add := func(seen string, devices []string, do string) {
		if len(devices) > 0 {
			what, next = append(what, seen+": "+strings.Join(devices, "; ")), append(next, do)
		}
	}
	add("GPUs that take no trials", h.SickDevices,
		"do there what the reason says, then start the worker again, which looks at all its GPUs: it finds its containers; what waits for such a GPU runs on others meanwhile, or waits")
	add("handed out no more", h.NotHandedOut,
		"if that is not wanted, see whether `nvidia-smi -L` shows the GPU, and start the worker with `--gpus` that names it; else Berth forgets the GPU after 15 minutes, once its trials have ended")
	add("take no trials for a moment", h.StartingMPS, "wait: a daemon starts in seconds; the worker's log says why one does not")
	add("shared by time slices, as their MPS does not run", h.Sliced,
		"for MPS see what the worker says of it in its log, and `berth doctor` there; it tries again by itself, every ten minutes at the latest")

	if len(what) == 0 {
		return Fine("devices", "no GPU reports a problem")
	}

	well := len(h.SickDevices) == 0

	return Finding{OK: well, Warn: well, Part: "devices", What: strings.Join(what, "; "), Next: strings.Join(next, "; ")}
}

// starts is the finding about hosts that cannot start containers.
func (h State) starts() Finding {
	if len(h.Cordoned) == 0 {
		return Fine("starts", "no host fails to start containers")
	}

	return Broken("starts", "cordoned, as trials failed to start there one after the other: "+strings.Join(h.Cordoned, "; "),
		"see whether `docker run --rm` starts a container there, and mend Docker; Berth tests the host by itself now and then, or at once after `berth host ready`")
}

// requests is the finding about requests for a place.
func (h State) requests() Finding {
	if h.StuckTrials == 0 {
		return Fine("requests", "the placer can place every request")
	}

	stuck := make([]string, len(h.Stuck))
	for i, t := range h.Stuck {
		stuck[i] = t.String()
	}

	return Broken("requests", fmt.Sprintf("%d trials cannot be placed: %s", h.StuckTrials, strings.Join(stuck, "; ")),
		"the placer tries them again by itself, and places all others meanwhile; when it lasts, cancel the sweep with `berth sweep cancel` and report the reason")
}

// alarm is the finding about what only a person can decide.
func (h State) alarm() Finding {
	if h.Alarm != "" {
		return Broken(PartWorkflows, h.Alarm, alarmNext)
	}

	return Fine(PartWorkflows, "every open sweep has its workflow in Temporal")
}
