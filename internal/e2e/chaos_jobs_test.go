//go:build integration && nightly

package e2e

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// tooLarge is more than any host has: Berth may refuse the file, or finds it
// infeasible.
const tooLarge = "memory: 8GiB"

// Parts of sweep files. The parameter ms is how long a trial works.
const (
	onCores    = "resources: {device: cpu, memory: 64MiB, cpus: 0.5}\nprobe: {mode: 'off'}\nparameters: [TIMES]\n"
	unmeasured = "resources: {device: cpu, cpus: 0.25}\nprobe: {mode: PROBE}\nenvironment_variables: {GROUP: 'NUMBER'}\n"
	ofShape    = "parameters: [TIMES, {name: shape, values: [1], memory: true}]\n"
	reads      = "command: [/busy, reads, '{{ms}}', '{{ms}}', base=bNUMBER, features=fNUMBER]\n" +
		"stages: [{name: base, command: [/busy, stage, '900', bNUMBER]}, {name: features, command: [/busy, stage, '400', fNUMBER]}]\n"
	gpuCommand = "[/busy, gpu, '--steps', '2', '--cpu', 0s, '--gpu', '{{ms}}ms', '--retry', 200ms, '--value', '{{ms}}', '--mib', "
)

// jobs are the jobs of sweeps; a job listed twice is drawn twice as often.
var jobs = []string{
	"command: [/busy, epochs, '{{ms}}', '{{ms}}', '8']\n" + onCores,
	"command: [/busy, epochs, '{{ms}}', '{{ms}}', '8']\n" + onCores,
	"command: [/busy, train, '{{ms}}', '{{ms}}', '{{mib}}']\nparameters: [TIMES, {name: mib, values: [MIB], memory: true}]\n" + unmeasured,
	"command: [/busy, train, '{{ms}}', '{{ms}}', '{{mib}}']\nparameters: [TIMES, {name: mib, values: [8, MIB], memory: true}]\n" + unmeasured,
	"command: [/busy, late, '6000', '{{ms}}', '150']\n" + ofShape + unmeasured, // takes its memory at the end of its life
	"command: [/busy, checkpoint, '{{ms}}']\n" + ofShape + unmeasured,
	"command: [/busy, train, '{{ms}}', '{{ms}}', '90']\n" + onCores, // the kernel kills its first attempt
	"command: [/busy, exit, '3', '{{ms}}']\n" + onCores,
	"command: [/busy, exit, '0', '{{ms}}']\n" + onCores, // without a result
	"command: [/busy, ignore, '{{ms}}']\n" + onCores,    // until its time is over
	"command: [/busy, caught, '{{ms}}']\n" + onCores,
	reads + onCores,
	reads + onCores,
	reads + onCores,
	reads + onCores,
	reads + ofShape + unmeasured,
	reads + ofShape + unmeasured,
	"command: [/busy, train, '{{ms}}', '{{ms}}', '8']\n" + strings.Replace(onCores, "memory: 64MiB", tooLarge, 1),
	"command: " + gpuCommand + "'200']\n" + ofShape + "resources: {device: gpu, memory: 64MiB, cpus: 0.1}\nprobe: {mode: PROBE}\n",
	"command: " + gpuCommand + "'200']\n" + ofShape + "resources: {device: gpu, memory: 64MiB, cpus: 0.1, gpu_memory: 1200MiB}\n",
	"command: " + gpuCommand + "'700']\n" + ofShape + "resources: {device: gpu, memory: 64MiB, cpus: 0.1, gpu_memory: 1GiB}\n",                       // grows
	"command: " + gpuCommand + "'200', '--fault-at', '2']\n" + ofShape + "resources: {device: gpu, memory: 64MiB, cpus: 0.1, gpu_memory: 1200MiB}\n", // ends the clients of its GPU
}

const (
	// groupSize is how many sweeps in a row share their shapes: then there is always
	// a shape to measure, and often another sweep that measures it.
	groupSize = 8
	// trialLimit ends a healthy trial only on a machine that is half as fast as it
	// should be, and hangLimit ends hanging trials.
	trialLimit = 12 * time.Second
	hangLimit  = 3 * time.Second
)

// drawSweep draws the nth sweep file.
func drawSweep(r *rand.Rand, n int) string {
	var times []string

	for i := range 1 + r.IntN(6) {
		times = append(times, strconv.Itoa(200+8*i+r.IntN(30)*100)) // no two are equal
	}

	probes := []string{"auto", "full", "short"}
	sizes := []string{"24", "40", "56"}
	job := strings.NewReplacer(
		"TIMES", "{name: ms, values: ["+strings.Join(times, ", ")+"]}",
		"PROBE", probes[r.IntN(len(probes))], "MIB]", sizes[r.IntN(len(sizes))]+"]", "NUMBER", strconv.Itoa(n/groupSize),
	).Replace(jobs[r.IntN(len(jobs))])

	limit := trialLimit
	if strings.Contains(job, "ignore") {
		limit = hangLimit
	}

	limits := fmt.Sprintf("max_trial_duration: %s", limit)
	if r.IntN(4) == 0 {
		limits += fmt.Sprintf(", max_parallel: %d", 1+r.IntN(2))
	}

	return fmt.Sprintf("name: chaos %d\nimage: berth-test/busy:1\n%slimits: {%s}\nsearch: {algorithm: grid}\nobjective: {metric: val}\n"+
		"metrics: {source: stdout}\n", n, job, limits)
}
