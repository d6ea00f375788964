package export

import (
	"github.com/berthml/berth"
)

// Trials is the table of the trials of one sweep.
type Trials struct {
	Columns []Column

	params   []Column // each named as its parameter
	results  []string
	datasets []string
}

// prefixes of columns that are named by the sweep file.
const (
	ParamPrefix   = "params."
	ResultPrefix  = "results."
	DatasetPrefix = "datasets."
)

// NewTrials is the table of a sweep with this spec.
func NewTrials(spec berth.Spec) *Trials {
	t := &Trials{datasets: spec.DatasetNames()}
	t.Columns = []Column{
		{"number", Integer, true}, {"id", Text, true}, {"state", Text, true}, {"value", Float, false},
	}

	for _, p := range spec.Parameters {
		kind := kindOf(p)
		t.params = append(t.params, Column{Name: p.Name, Kind: kind})
		t.Columns = append(t.Columns, Column{Name: ParamPrefix + p.Name, Kind: kind})
	}

	t.Columns = append(t.Columns,
		Column{"failure_kind", Text, false}, Column{"message", Text, false},
		Column{"attempts", Integer, true}, Column{"attempt", Integer, false}, Column{"attempt_id", Text, false}, Column{"exit_code", Integer, false},
		Column{"host", Text, false}, Column{"device", Text, false},
		Column{"memory_reserved_bytes", Integer, false}, Column{"memory_peak_bytes", Integer, false},
		Column{"device_reserved_bytes", Integer, false}, Column{"device_peak_bytes", Integer, false},
		Column{"seconds", Float, false}, Column{"created_at", Time, true}, Column{"started_at", Time, false}, Column{"finished_at", Time, false})

	if wanted := spec.Wanted(); len(wanted) > 1 {
		for _, o := range wanted {
			t.results = append(t.results, o.Metric)
			t.Columns = append(t.Columns, Column{Name: ResultPrefix + o.Metric, Kind: Float})
		}
	}

	for _, name := range t.datasets {
		t.Columns = append(t.Columns, Column{Name: DatasetPrefix + name, Kind: Text})
	}

	return t
}

// Row is a trial. Errors: internal for a value that its parameter cannot have.
func (t *Trials) Row(trial berth.ExportedTrial) (Row, error) {
	row := make(Row, 0, len(t.Columns))
	row = append(row, int64(trial.Number), trial.ID, string(trial.State), orNil(trial.Value))

	for _, p := range t.params {
		v, active := trial.Params[p.Name]
		if !active {
			row = append(row, nil)

			continue
		}

		cell, ok := cellOf(v, p.Kind)
		if !ok {
			return nil, berth.Errorf(berth.KindInternal, "exporting trial %d: %q is no value of parameter %q", trial.Number, v.String(), p.Name)
		}

		row = append(row, cell)
	}

	row = append(row, unlessZero(string(trial.Kind)), unlessZero(trial.Message), int64(trial.Attempts))

	a := berth.Attempt{}
	if trial.Counts != nil {
		a = *trial.Counts
		row = append(row, int64(a.Number), a.ID)
	} else {
		row = append(row, nil, nil)
	}

	row = append(row, exitCode(a), unlessZero(trial.HostName), unlessZero(a.DeviceID),
		unlessZero(a.Demand.MemoryBytes), unlessZero(a.Usage.MemoryPeakBytes), unlessZero(a.Demand.DeviceBytes), unlessZero(a.Usage.DevicePeakBytes),
		seconds(trial.Trial), trial.CreatedAt, orNil(trial.StartedAt), orNil(trial.FinishedAt))

	for _, name := range t.results {
		if value, has := trial.Results[name]; has {
			row = append(row, value)
		} else {
			row = append(row, nil)
		}
	}

	for _, name := range t.datasets {
		row = append(row, unlessZero(a.Datasets[name]))
	}

	return row, nil
}

func exitCode(a berth.Attempt) any {
	if a.ExitCode == nil {
		return nil
	}

	return int64(*a.ExitCode)
}

// seconds is how long a trial took that started and has ended.
func seconds(t berth.Trial) any {
	if t.StartedAt == nil || t.FinishedAt == nil {
		return nil
	}

	return t.FinishedAt.Sub(*t.StartedAt).Seconds()
}
