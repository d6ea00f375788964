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

		if d.Version != "" {
			version = r.awaitVersion(ctx, d.Name)
		}

		if ctx.Err() != nil {
			return ctx.Err()
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

// A worker that starts, or sees a new file, reads a data set for a while before it knows the
// version.
const (
	datasetPatience = 5 * time.Minute
	datasetPause    = time.Second
)

// awaitVersion is the version that the host has of a data set, once its worker has read it;
// empty = it has none, or was not read in time.
func (r *run) awaitVersion(ctx context.Context, name string) string {
	for until := time.Now().Add(datasetPatience); ; {
		version, found := r.datasetVersion(name)
		if version != "" || !found || time.Now().After(until) {
			return version
		}

		select {
		case <-time.After(datasetPause):
		case <-ctx.Done():
			return ""
		}
	}
}

// datasetVersion is the version that the host has of a data set now; empty = not known.
func (r *run) datasetVersion(name string) (version string, found bool) {
	if r.config.Dataset == nil {
		return "", false
	}

	_, version, found = r.config.Dataset(name)

	return version, found
}

// datasetChanged names a data set that is not in the version that the sweep reads any more;
// empty = none.
func (r *run) datasetChanged(ctx context.Context) string {
	for _, d := range r.who.Spec.Datasets {
		if r.awaitVersion(ctx, d.Name) != d.Version {
			return d.Name
		}
	}

	return ""
}
