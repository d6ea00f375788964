package e2e

import "strings"

// mutations are edits of a valid sweep file. Berth refuses what comes out, or
// it is runnable.
var mutations = []struct{ old, recent string }{
	{"memory: 64MiB", "memory: 1KiB"},
	{"memory: 64MiB", "memory: 6MiB"},
	{"memory: 64MiB", "memory: -1"},
	{"memory: 64MiB", "memory: 9999TiB"},
	{"memory: 64MiB", "memory: 64MiB, shm_size: 10GiB"},
	{"memory: 64MiB", "memory: 64MiB, shm_size: 1"},
	{"cpus: 0.5", "cpus: 0.0001"},
	{"cpus: 0.5", "cpus: 0.001"},
	{"cpus: 0.5", "cpus: 1e9"},
	{"cpus: 0.5", "cpus: .nan"},
	{"'0.5'", "'{{'"},
	{"'0.5'", "''"},
	{"'0.5'", `"a\0b"`},
	{"'0.5'", "NaN"},
	{"/busy, train", "/busy, ''"},
	{"/busy, train", "'', train"},
	{"/busy, train", "/absent, train"},
	{"'{{ms}}'", "'{{nothing}}'"},
	{"'{{ms}}'", "'--ms={{ms}}'"},
	{"{name: ms, values: [", "{name: ms, values: [-5, "},
	{"{name: ms, values: [", "{name: ms, values: [1e308, "},
	{"{name: ms, values: [", "{name: ms, values: ['x y', "},
	{"{name: ms, values: [", "{name: ms, values: ['-x', "},
	{"{name: ms, values: [", "{name: ms, values: [true, "},
	{"{name: ms, values: [", "{name: x, type: derived, expr: '1/0*ms'}, {name: ms, values: ["},
	{"{name: ms, values: [", "{name: x, type: derived, expr: 'ms - 1e6'}, {name: ms, values: ["},
	{"image: ", "environment_variables: {'A=B': x}\nimage: "},
	{"image: ", "environment_variables: {A: \"\\0\"}\nimage: "},
	{"image: ", "environment_variables: {PATH: ''}\nimage: "},
	{"image: ", "environment_variables: {LD_PRELOAD: /absent.so}\nimage: "},
	{"image: ", "workdir: relative\nimage: "},
	{"image: ", "workdir: /absent\nimage: "},
	{"image: ", "limits: {max_parallel: 0}\nimage: "},
	{"image: ", "limits: {max_trial_duration: 1ns}\nimage: "},
	{"image: ", "limits: {max_trial_duration: 1s}\nimage: "},
	{"image: ", "limits: {max_trials: 1}\nimage: "},
	{"image: ", "limits: {max_failed_trials: 1}\nimage: "},
	{"image: ", "retry: {max_attempts: 0}\nimage: "},
	{"image: ", "retry: {max_attempts: 1}\nimage: "},
	{"image: ", "network: maybe\nimage: "},
	{"image: ", "labels: {'': ''}\nimage: "},
	{"image: ", "datasets: [{name: absent, target: /data}]\nimage: "},
	{"image: ", "secrets: [{name: absent, file: key}]\nimage: "},
	{"image: ", "forbid: ['ms > 0']\nimage: "},
	{"image: ", "nothing: {}\nimage: "},
	{"image: berth-test/busy:1", "image: berth-test/absent:1"},
	{"image: berth-test/busy:1", "image: BERTH/test:1"},
	{"probe: {mode: 'off'}", "probe: {mode: short, max_duration: 1s}"},
	{"probe: {mode: 'off'}", "probe: {mode: auto, max_duration: 1ms}"},
	{"metric: val", "metric: ''"},
	{"metric: val", "metric: other"},
	{"metric: val", "metric: val, target: 0.1"},
	{"source: stdout", "source: file"},
	{"algorithm: grid", "algorithm: random"},
	{"algorithm: grid", "algorithm: list"},
	{"\n", "\r\n"},
	{"name: ", "name: \u202e"},
}

func mutate(file string, which []int) string {
	for _, i := range which {
		file = strings.Replace(file, mutations[i].old, mutations[i].recent, 1)
	}

	return file
}
