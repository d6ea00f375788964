package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berthml/berth"
)

// Capacity is the capacity of hosts.
type Capacity struct {
	Hosts      []HostCapacity
	SecretKeys map[string]string // public part of the key that opens a secret, by its name
}

// HostCapacity is the most that one host offers to one trial.
type HostCapacity struct {
	Name        string
	MemoryBytes int64
	CPUMilli    int64
	Datasets    []string // names of the data sets that it has
	SecretKeys  []string // public parts of the keys of secrets that it has
}

// CheckCapacity reports the demands of a valid spec that no host can ever meet:
// too much for every host, else the shortage of the nearest host.
func CheckCapacity(s berth.Spec, has Capacity) []berth.Problem {
	if lacks := lacksOf(s, has, bestHost(has.Hosts)); len(lacks) > 0 {
		return lacks
	}

	var nearest []berth.Problem

	for i, host := range has.Hosts {
		lacks := lacksOf(s, has, host)
		if i == 0 || len(lacks) < len(nearest) {
			nearest = lacks
		}
	}

	return nearest
}

// bestHost is a host with every feature of any host, and the size of the largest.
func bestHost(hosts []HostCapacity) HostCapacity {
	var all HostCapacity

	for _, h := range hosts {
		all.MemoryBytes = max(all.MemoryBytes, h.MemoryBytes)
		all.CPUMilli = max(all.CPUMilli, h.CPUMilli)
		all.Datasets = append(all.Datasets, h.Datasets...)
		all.SecretKeys = append(all.SecretKeys, h.SecretKeys...)
	}

	slices.Sort(all.Datasets)
	all.Datasets = slices.Compact(all.Datasets)

	return all
}

// lacksOf is a trial's demands that a host does not meet. A host without a name
// stands for all hosts.
func lacksOf(s berth.Spec, has Capacity, host HostCapacity) []berth.Problem {
	var out []berth.Problem

	whose := "every host"
	if host.Name != "" {
		whose = "host " + host.Name + ", the nearest as no host has all,"
	}

	lack := func(code, pointer, format string, args ...any) {
		out = append(out, problem(code, pointer, whose+" lacks "+format, args...))
	}

	for _, size := range []struct {
		name  string
		bytes berth.Size
	}{{"memory", s.Resources.Memory}, {"shm_size", s.Resources.ShmSize}} {
		if int64(size.bytes) > host.MemoryBytes {
			lack(CodeUnsatisfiable, "/resources/"+size.name, "memory: %s are more than %s", berth.BytesText(int64(size.bytes)), berth.BytesText(host.MemoryBytes))
		}
	}

	if cpus := s.Resources.CPUs; int64(cpus) > host.CPUMilli {
		lack(CodeUnsatisfiable, "/resources/cpus", "cores: %g are more than %g", float64(cpus)/1000, float64(host.CPUMilli)/1000)
	}

	for i, name := range s.DatasetNames() {
		if !slices.Contains(host.Datasets, name) {
			lack(codeDataset, fmt.Sprintf("/datasets/%d/name", i), "the data set %q (there are: %s); start a worker with --dataset %s=PATH",
				name, cmp.Or(strings.Join(host.Datasets, ", "), "none"), name)
		}
	}

	for i, m := range s.Secrets {
		if key := has.SecretKeys[m.Name]; key != "" && !slices.Contains(host.SecretKeys, key) { // CheckSecrets reports a secret that is not stored
			lack(codeSecret, fmt.Sprintf("/secrets/%d/name", i), "the key of secret %q; start a worker with --secrets-key and a file that holds the private key of %s", m.Name, key)
		}
	}

	return out
}

// FromProblem is that of an earlier sweep from which the search cannot learn.
func FromProblem(i int, why string) berth.Problem {
	return problem(codeFrom, fmt.Sprintf("/search/from/%d", i), "%s", why)
}

func problem(code, pointer, format string, args ...any) berth.Problem {
	return berth.Problem{Code: code, Pointer: pointer, Message: fmt.Sprintf(format, args...)}
}
