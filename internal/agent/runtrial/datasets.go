package runtrial

import (
	"context"
	"time"

	"github.com/berthml/berth"
)

// FindDataset returns the path of a data set of this host, and its version; an empty
// version = not known.
type FindDataset func(name string) (path, version string, found bool)

// addDatasets mounts what the sweep names. Errors: *berth.StartError where the host
// does not have it any more: another one may.
func (r *run) addDatasets(ctx context.Context, l *berth.Launch) error {
	for _, d := range r.who.Spec.Datasets {
		var (
			path, version string
			found         bool
		)

		if r.config.Dataset != nil {
			path, version, found = r.config.Dataset(d.Name)
		}

		if !found {
			return &berth.StartError{Kind: berth.FailureInfra, Err: berth.Errorf(berth.KindInvalid,
				"host %s has no data set %q any more; start its worker with --dataset %s=PATH", r.config.HostName, d.Name, d.Name)}
		}

		for until := time.Now().Add(datasetPatience); found && version == "" && d.Version != "" && time.Now().Before(until); {
			select { // its worker reads it
			case <-time.After(datasetPause):
			case <-ctx.Done():
				return ctx.Err()
			}

			version, found = r.datasetVersion(d.Name)
		}

		if d.Version != "" && version != d.Version {
			return &berth.StartError{Kind: berth.FailureInfra, Inputs: true, Err: berth.Errorf(berth.KindInvalid,
				"the data set %q of host %s changed, and the sweep reads version %s of it", d.Name, r.config.HostName, d.Version)}
		}

		l.Mounts = append(l.Mounts, berth.Mount{Source: path, Target: d.Target, ReadOnly: true})

		if l.Datasets == nil {
			l.Datasets = make(map[string]string)
		}

		l.Datasets[d.Name] = version
	}

	return nil
}
