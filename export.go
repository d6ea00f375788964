package berth

// ExportedTrial is a trial as exports have it: with the attempt that it is judged
// by, its newest that is no short probe.
type ExportedTrial struct {
	Trial

	Counts   *Attempt // nil = it had none
	HostName string   // of that attempt; empty without one
}

// ExportedMetric is a metric point as exports have it.
type ExportedMetric struct {
	MetricPoint

	TrialNumber   int
	AttemptNumber int
	Counts        bool // its attempt is the trial's newest that is no short probe
}

// Key says where the point stands among all of its sweep.
func (m ExportedMetric) Key() MetricKey {
	return MetricKey{Trial: m.TrialNumber, Attempt: m.AttemptNumber, Name: m.Name, Step: m.Step}
}

// MetricKey orders the metric points of a sweep: by trial, attempt, name and step.
// The zero key is before all of them. One without a name is before all points of
// its attempt.
type MetricKey struct {
	Trial   int
	Attempt int
	Name    string
	Step    int64

	Counting int // number of the attempt of Trial that counts, as the page before had it; 0 = not known
}
