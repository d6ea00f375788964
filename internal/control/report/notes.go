package report

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// notes are the figures in sentences, without the unmeasured ones.
func notes(r Report, in Input) []string {
	var out []string

	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }

	if !r.Ended {
		add("The sweep is %s: these are its figures so far.", in.State)
	}

	switch {
	case in.Trials == 0:
		add("The sweep has no trials yet.")
	case r.GPU.Attempts+r.Cores.Attempts == 0:
		add("No container of its %s started.", plural(in.Trials, "trial", "trials"))
	}

	if r.Missing > 0 {
		add("%s with a result: the attempts are not in the database any more, so what they used is missing here.", plural(r.Missing, "trial", "trials"))
	}

	out = append(out, gpuNotes(r)...)
	out = append(out, coreNotes(r.Cores)...)

	if held := r.GPU.HeldBack + r.Cores.HeldBack; held > 0 {
		add("%s by their limit of cores in a quarter of the time or more; more resources.cpus, or fewer threads and workers, make them faster.",
			plural(held, "attempt was held back", "attempts were held back"))
	}

	for _, stage := range r.Stages {
		add("%s shared stage %s: %s here instead of %d, %s of container time instead of %s.", plural(stage.Trials, "trial", "trials"), stage.Name,
			plural(stage.Runs, "run", "runs"), stage.Trials, timeText(stage.Spent), timeText(stage.Alone))
	}

	if note := firstFitNote(in); note != "" {
		out = append(out, note)
	}

	all := r.GPU.AttemptTime + r.Cores.AttemptTime
	for _, loss := range r.Losses {
		if loss.Time == 0 {
			add("%s ended as %s before a container ran; %d repeated.", plural(loss.Attempts, "attempt", "attempts"), loss.Cause, loss.Repeated)

			continue
		}

		add("%s ended as %s and took %s, %s of the time of all attempts; %d repeated.", plural(loss.Attempts, "attempt", "attempts"),
			loss.Cause, timeText(loss.Time), share(loss.Time, all), loss.Repeated)
	}

	return out
}

func gpuNotes(r Report) []string {
	t := r.GPU
	if t.Used == 0 {
		return nil
	}

	out := []string{hoursNote(t, "GPU", "GPUs", "GPU-hours", "one trial per GPU")}
	out = append(out, boundNotes(t)...)

	if t.DefaultByteSeconds > 0 && t.ReservedByteSeconds > 0 {
		out = append(out, fmt.Sprintf("Reserved %s GiB-hours of GPU memory instead of %s, which TensorFlow's default mode would take with one trial per GPU: %s.",
			gibHours(t.ReservedByteSeconds), gibHours(t.DefaultByteSeconds), times(t.DefaultByteSeconds/t.ReservedByteSeconds)))
	}

	out = append(out, sharedNotes(t, "GPUs", "GPU-hours")...)
	out = append(out, peakNotes(t, "GPU memory")...)

	return append(out, busyNote(r, t), activityNote(t))
}

// busyNote says how long GPUs had work of the sweep, however little.
func busyNote(r Report, t Totals) string {
	busy := 0.0

	for _, p := range r.Places {
		if p.DeviceID != "" {
			busy += p.BusyShare / float64(t.Places)
		}
	}

	return fmt.Sprintf("From the sweep's first start to its last end, %s had work of it %s of the time.",
		plural(t.Places, "GPU", "GPUs on average"), percentText(busy))
}

// knownActivity is the part of the attempts' time that must have a known activity;
// below it figures are lower bounds.
const knownActivity = 0.99

// activityNote says how busy the GPUs were with that work: a process that waits for its
// data holds a GPU, too.
func activityNote(t Totals) string {
	if t.ActivityTime == 0 {
		return "How busy the GPUs were meanwhile was not measured."
	}

	least, rest := "", ""
	if float64(t.ActivityTime) < knownActivity*float64(t.AttemptTime) {
		least = "at least "
		rest = fmt.Sprintf(" That is of %s of the attempts' time; of the rest it is not known.", share(t.ActivityTime, t.AttemptTime))
	}

	of := func(d time.Duration) string { return least + percentText(min(d.Seconds()/t.Used.Seconds(), 1)) }

	return fmt.Sprintf("They were held for %s GPU-hours: their SMs had work of the sweep %s of that time, tensor cores %s, and it used %s of the bandwidth of their memory.%s",
		hoursText(t.Used), of(t.SMTime), of(t.TensorTime), of(t.DRAMTime), rest)
}

func coreNotes(t Totals) []string {
	if t.Used == 0 {
		return nil
	}

	out := []string{hoursNote(t, "host's cores", "hosts' cores", "host-hours", "one trial at a time")}
	out = append(out, boundNotes(t)...)
	out = append(out, sharedNotes(t, "hosts", "host-hours")...)
	out = append(out, peakNotes(t, "memory")...)

	if t.CPUReservedTime > 0 {
		out = append(out, fmt.Sprintf("Attempts that were measured throughout used %s of the cores reserved for them.", share(t.CPUTime, t.CPUReservedTime)))
	}

	return out
}

// notAlone are attempts that exist only as several trials share a place.
const notAlone = "short probes, out of memory, trouble with neighbours"

// hoursNote is the hours that packing saved.
func hoursNote(t Totals, one, many, hours, instead string) string {
	trials, places := plural(t.Trials, "trial", "trials"), plural(t.Places, one, many)
	if t.MaxAtOnce <= 1 {
		alone := "one at a time"
		if t.Places > 1 {
			alone += " on each"
		}

		return fmt.Sprintf("%s ran on %s, %s: %s %s.", trials, places, alone, hoursText(t.Used), hours)
	}

	shared := fmt.Sprintf("%s shared %s, %s at once on average and %d at most: %s %s", trials, places, decimal(t.AtOnce), t.MaxAtOnce, hoursText(t.Used), hours)
	if t.AloneTime == 0 {
		return shared + ", for attempts that " + instead + " would not need: " + notAlone + "."
	}

	return shared + fmt.Sprintf(" instead of %s, %s.", hoursText(t.AloneTime), instead)
}

// boundNotes say how far the hours of one trial at a time were measured.
func boundNotes(t Totals) []string {
	if t.MaxAtOnce <= 1 || t.AloneTime == 0 {
		return nil
	}

	var out []string

	if t.AloneBounded > 0 {
		out = append(out, fmt.Sprintf("%s is an upper bound: %s ran beside others, which can take longer than alone; their time alone was not measured.",
			hoursText(t.AloneTime), plural(t.AloneBounded, "attempt", "attempts")))
	}

	if t.AloneByShape > 0 {
		out = append(out, fmt.Sprintf("%s counts %s that ran beside others with the mean time of their shape's runs alone in this sweep, or their own where that is less.",
			hoursText(t.AloneTime), plural(t.AloneByShape, "attempt", "attempts")))
	}

	if t.AloneNeedless > 0 {
		out = append(out, fmt.Sprintf("%s leaves out %s that one trial at a time would not need: %s.",
			hoursText(t.AloneTime), plural(t.AloneNeedless, "attempt", "attempts"), notAlone))
	}

	return out
}

// worthCharging is the part of the hours, as 1/n, that must be charged to others
// for a sentence: below a hundredth the figures in it would look alike.
const worthCharging = 100

// sharedNotes say how many of the hours are charged to the sweep, if not all.
func sharedNotes(t Totals, places, hours string) []string {
	if t.Used-t.Charged <= t.Used/worthCharging {
		return nil
	}

	return []string{fmt.Sprintf("Other sweeps used the same %s at the same time: %s of the %s %s are charged to this sweep, by its share of the reserved memory.",
		places, hoursText(t.Charged), hoursText(t.Used), hours)}
}

func peakNotes(t Totals, what string) []string {
	if t.Measured == 0 {
		return []string{fmt.Sprintf("No peak of %s was measured.", what)}
	}

	return []string{fmt.Sprintf("At their peaks, %s used %s of the %s reserved for them.", plural(t.Measured, "measured attempt", "measured attempts"),
		percentText(float64(t.PeakBytes)/float64(t.PeakReserved)), what)}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}

	return strconv.Itoa(n) + " " + many
}

// decimal writes 9.62 as 9.6, and 12 as 12.
func decimal(v float64) string {
	const ten = 10

	return strconv.FormatFloat(math.Round(v*ten)/ten, 'f', -1, 64)
}

// significant writes a number that is not negative with two significant digits,
// and all digits before the point: 0.0042, 0.13, 9.6, 123.
func significant(v float64) string {
	const digits = 2

	if v <= 0 {
		return "0"
	}

	places := max(digits-1-int(math.Floor(math.Log10(v))), 0)

	return strconv.FormatFloat(v, 'f', places, 64)
}

func hoursText(d time.Duration) string { return significant(d.Hours()) }

func gibHours(byteSeconds float64) string {
	const gib = 1 << 30

	return significant(byteSeconds / gib / time.Hour.Seconds())
}

// times says how many times less, or more, something is.
func times(ratio float64) string {
	if ratio < 1 {
		return significant(1/ratio) + " times more"
	}

	return significant(ratio) + " times less"
}

func timeText(d time.Duration) string {
	switch {
	case d < 3*time.Minute:
		return decimal(d.Seconds()) + " s"
	case d < 3*time.Hour:
		return decimal(d.Minutes()) + " min"
	default:
		return decimal(d.Hours()) + " h"
	}
}

func share(part, whole time.Duration) string { return percentText(part.Seconds() / whole.Seconds()) }

func percentText(share float64) string {
	if p := percent(share, 1); p < 1 && p > 0 {
		return significant(p) + " %"
	}

	return strconv.FormatFloat(percent(share, 1), 'f', 0, 64) + " %"
}
