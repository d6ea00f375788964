package forecast_test

import (
	"fmt"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/forecast"
	"github.com/berthml/berth/internal/packing"
)

const gib = 1 << 30

// host has a slot for each GiB: a request of one takes it.
func host(id string, slots int64) berth.Host {
	return berth.Host{
		ID: id, Name: "host-" + id, State: berth.HostReady, CPUMilli: slots * 1000, MemoryBytes: slots * gib, MemoryFreeBytes: slots * gib,
	}
}

func demand(slots int64) berth.Demand {
	return berth.Demand{MemoryBytes: slots * gib, CPUMilli: slots * 1000}
}

// takes is a run time whose quartiles are the same.
func takes(d time.Duration) berth.RunTime { return berth.RunTime{Known: true, Min: d, Max: d} }

// request is the nth of a sweep: the older ones have the smaller numbers.
func request(sweep string, n int, slots int64, takes berth.RunTime) forecast.Request {
	return forecast.Request{
		Takes: takes,
		Request: packing.Request{
			AttemptID: fmt.Sprintf("%s-%03d", sweep, n), SweepID: sweep, Number: n, Demands: berth.Demands{berth.ClassCPU: demand(slots)},
			Expected: takes.Max, Waited: time.Second * time.Duration(300-n), Asked: time.Second * time.Duration(300-n),
		},
	}
}

// hold books what runs on a host.
func hold(w *forecast.World, host int, sweep string, slots int64, left berth.RunTime) {
	h := &w.Hosts[host]
	d := demand(slots)
	h.MemoryReservedBytes += d.MemoryBytes
	h.CPUMilliReserved += d.CPUMilli
	h.Attempts++

	w.Running = append(w.Running, forecast.Running{SweepID: sweep, HostID: h.ID, Demand: d, Left: left})
}
