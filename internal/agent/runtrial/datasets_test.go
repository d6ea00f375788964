package runtrial

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// with gives the sweep of the attempt data sets, and the host those of found.
func (r *rig) with(found map[string]string, names ...string) {
	r.books.says(func(who *berth.Assignee) {
		for _, name := range names {
			who.Spec.Datasets = append(who.Spec.Datasets, berth.DatasetMount{Name: name, Target: "/data/" + name})
		}
	})

	r.config.Dataset = func(name string) (path, version string, ok bool) {
		version, ok = found[name]

		return "/srv/" + name, version, ok
	}
}

func TestRun_MountsDatasetsAndKeepsTheirVersions(t *testing.T) {
	t.Parallel()

	r := setup(t)
	found := map[string]string{"flowers": "v1", "birds": "", "trees": "v1"}
	r.with(found, "flowers", "birds", "trees")

	box, ended := r.begin(t)

	launch := r.docks.launches()[0]
	require.Subset(t, launch.Mounts, []berth.Mount{
		{Source: "/srv/flowers", Target: "/data/flowers", ReadOnly: true}, {Source: "/srv/birds", Target: "/data/birds", ReadOnly: true},
	})

	found["trees"] = "v2" // it may have read either
	ends(t, box, ended, "acc=1\n", 0)
	require.Equal(t, map[string]string{"flowers": "v1", "birds": "", "trees": ""}, r.books.result(t).Datasets)
}

// A worker that was started anew without the data set gives the attempt away.
func TestRun_WithoutItsDataset(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.config.HostName = "gpu-1"
	r.with(nil, "flowers")

	got := came(t, r.start(t.Context(), r.order()))
	require.Equal(t, berth.FailureInfra, got.Kind, "another host may have it")
	require.Contains(t, got.Message, `host gpu-1 has no data set "flowers" any more; start its worker with --dataset flowers=PATH`)
	require.Empty(t, r.docks.launches())
}

// A sweep that reads another version than the host has now goes elsewhere.
func TestRun_WithAnotherVersionOfItsDataset(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.config.HostName = "gpu-1"
	r.with(map[string]string{"flowers": "v2"}, "flowers")
	r.books.says(func(who *berth.Assignee) { who.Spec.Datasets[0].Version = "v1" })

	got := came(t, r.start(t.Context(), r.order()))
	require.Equal(t, berth.FailureInfra, got.Kind, "another host may have it")
	require.Contains(t, got.Message, `the data set "flowers" of host gpu-1 changed, and the sweep reads version v1 of it`)
	require.Empty(t, r.docks.launches())
}

// A worker that was started a moment ago reads the data set before it says which version it has.
func TestRun_WaitsForTheVersionOfItsDataset(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.with(nil, "flowers")
		r.books.says(func(who *berth.Assignee) { who.Spec.Datasets[0].Version = "v1" })

		began := time.Now()
		r.config.Dataset = func(string) (path, version string, found bool) {
			if time.Since(began) > time.Minute {
				version = "v1"
			}

			return "/srv/flowers", version, true
		}

		require.Equal(t, "v1", r.launch(t).Datasets["flowers"])
	})
}
