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
	Datasets    []string // that it has, as NAME or NAME@VERSION
	SecretKeys  []string // public parts of the keys of secrets that it has
}

// CheckCapacity reports the demands of a valid spec, and of its stages, that no host can ever meet:
// too much for every host, else the shortage of the nearest host.
func CheckCapacity(s berth.Spec, has Capacity) []berth.Problem {
	problems := shortage(s, has, has.Hosts)
	bare := s
	bare.Resources = berth.Resources{}

	// A stage's host needs the data sets and keys of the sweep. Where no host has them, problems says so.
	offering := slices.DeleteFunc(slices.Clone(has.Hosts), func(h HostCapacity) bool { return len(lacksOf(bare, has, h)) > 0 })

	for i, stage := range s.Stages {
		if stage.Resources == nil {
			continue
		}

		for _, p := range shortage(s.ForStage(stage.Name), has, offering) {
			if field, is := strings.CutPrefix(p.Pointer, "/resources"); is {
				p.Pointer = fmt.Sprintf("/stages/%d/resources%s", i, field)
				problems = append(problems, p)
			}
		}
	}

	return problems
}

// shortage is what every host lacks, else what the nearest of hosts lacks.
func shortage(s berth.Spec, has Capacity, hosts []HostCapacity) []berth.Problem {
	if lacks := lacksOf(s, has, bestHost(has.Hosts)); len(lacks) > 0 {
		return lacks
	}

	var nearest []berth.Problem

	for i, host := range hosts {
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

	for i, d := range s.Datasets {
		switch at := fmt.Sprintf("/datasets/%d", i); {
		case !berth.HasDataset(host.Datasets, d.Name):
			lack(codeDataset, at+"/name", "the data set %q (there are: %s); start a worker with --dataset %s=PATH",
				d.Name, cmp.Or(strings.Join(datasetNames(host.Datasets), ", "), "none"), d.Name)
		case !berth.HasDataset(host.Datasets, d.ID()):
			lack(codeDataset, at+"/version", "version %s of the data set %q (there is: %s); leave version out to take what the hosts have",
				d.Version, d.Name, cmp.Or(strings.Join(berth.DatasetVersions(host.Datasets, d.Name), ", "), "one that its worker is reading"))
		}
	}

	for i, m := range s.Secrets {
		if key := has.SecretKeys[m.Name]; key != "" && !slices.Contains(host.SecretKeys, key) { // CheckSecrets reports a secret that is not stored
			lack(codeSecret, fmt.Sprintf("/secrets/%d/name", i), "the key of secret %q; start a worker with --secrets-key and a file that holds the private key of %s", m.Name, key)
		}
	}

	return out
}

func datasetNames(ids []string) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i], _, _ = strings.Cut(id, "@")
	}

	return slices.Compact(names) // they are sorted
}

// PinDatasets sets the versions of the data sets of a valid spec with stages, whose outputs
// depend on them.
func PinDatasets(s berth.Spec, hosts []HostCapacity) (pinned berth.Spec, problems []berth.Problem) {
	if len(s.Stages) == 0 {
		return s, nil
	}

	s.Datasets = slices.Clone(s.Datasets)

	for i := range s.Datasets {
		d := &s.Datasets[i]
		at := fmt.Sprintf("/datasets/%d/name", i)

		if d.Version != "" {
			continue
		}

		var versions, where []string

		for _, h := range hosts {
			for _, version := range berth.DatasetVersions(h.Datasets, d.Name) {
				if !slices.Contains(versions, version) {
					versions, where = append(versions, version), append(where, version+" ("+h.Name+")")
				}
			}
		}

		switch len(versions) {
		case 0:
			problems = append(problems, problem(codeDataset, at, "no worker has read yet which version of the data set %q it has, on which stages depend; submit again in a moment (a data set of more than 5,000,000 files has none)", d.Name))
		case 1:
			d.Version, d.Pinned = versions[0], true
		default:
			problems = append(problems, problem(codeDataset, at, "hosts have the data set %q in %d versions: %s; stages read one: copy it with its times, as rsync -a does, or write version: %s",
				d.Name, len(versions), strings.Join(where, ", "), versions[0]))
		}
	}

	return s, problems
}

// FromProblem is that of an earlier sweep from which the search cannot learn.
func FromProblem(i int, why string) berth.Problem {
	return problem(codeFrom, fmt.Sprintf("/search/from/%d", i), "%s", why)
}

func problem(code, pointer, format string, args ...any) berth.Problem {
	return berth.Problem{Code: code, Pointer: pointer, Message: fmt.Sprintf(format, args...)}
}
