package spec

import (
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

	r, whose := s.Resources, "the largest host has"
	if host.Name != "" {
		whose = fmt.Sprintf("host %s has, the nearest as no host has all", host.Name)
	}

	if int64(r.Memory) > host.MemoryBytes {
		out = append(out, problem(CodeUnsatisfiable, "/resources/memory", "%s is more than %s: %s",
			berth.BytesText(int64(r.Memory)), whose, berth.BytesText(host.MemoryBytes)))
	}

	if int64(r.ShmSize) > host.MemoryBytes {
		out = append(out, problem(CodeUnsatisfiable, "/resources/shm_size", "%s is more than %s: %s",
			berth.BytesText(int64(r.ShmSize)), whose, berth.BytesText(host.MemoryBytes)))
	}

	if int64(r.CPUs) > host.CPUMilli {
		out = append(out, problem(CodeUnsatisfiable, "/resources/cpus", "%g cores are more than %s: %g",
			float64(r.CPUs)/1000, whose, float64(host.CPUMilli)/1000))
	}

	for i, name := range s.DatasetNames() {
		if slices.Contains(host.Datasets, name) {
			continue
		}

		at := fmt.Sprintf("/datasets/%d/name", i)

		switch {
		case host.Name != "":
			out = append(out, problem(codeDataset, at, "no host has all: the nearest, %s, has no data set %q; start its worker with --dataset %s=PATH",
				host.Name, name, name))
		case len(host.Datasets) == 0:
			out = append(out, problem(codeDataset, at, "no machine has a data set %q (no machine has any); start a worker with --dataset %s=PATH", name, name))
		default:
			out = append(out, problem(codeDataset, at, "no machine has a data set %q (there are: %s); start a worker with --dataset %s=PATH",
				name, strings.Join(host.Datasets, ", "), name))
		}
	}

	for i, m := range s.Secrets {
		key := has.SecretKeys[m.Name]
		if key == "" || slices.Contains(host.SecretKeys, key) { // CheckSecrets reports a secret that is not stored
			continue
		}

		whose := "no machine opens it"
		if host.Name != "" {
			whose = "no host has all: the nearest, " + host.Name + ", does not open it"
		}

		out = append(out, problem(codeSecret, fmt.Sprintf("/secrets/%d/name", i), "secret %q: %s; start a worker with --secrets-key and a file that holds the private key of %s",
			m.Name, whose, key))
	}

	return out
}

func problem(code, pointer, format string, args ...any) berth.Problem {
	return berth.Problem{Code: code, Pointer: pointer, Message: fmt.Sprintf(format, args...)}
}
