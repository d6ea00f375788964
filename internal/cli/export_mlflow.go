package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth/api/client"
)

// MLflow's words for how a run stands (mlflow/entities/run_status.py), and where it
// comes from (source_type.py).
const (
	mlflowRunning   = 1
	mlflowScheduled = 2
	mlflowFinished  = 3
	mlflowFailed    = 4
	mlflowKilled    = 5

	mlflowLocal = 4
)

// mlflowValue is the metric of what a trial is ranked by.
const mlflowValue = "berth.value"

// mlflow writes a sweep as an experiment of MLflow's file store, as its
// store/tracking/file_store.py (3.17) reads it: a run is a directory with
// meta.yaml and a file for each param, tag and metric; a point is a line with
// its time in ms, its value and its step.
type mlflow struct {
	root       *os.Root // the experiment's directory
	place      string   // where it will be
	experiment string   // its id
	files      func(t trialLine, dir string) error
	fetch      []trialLine // whose files are wanted

	runs map[int]string // the directory of each trial's run

	trialNumber int             // whose points are written
	names       map[string]bool // of its metrics, as MLflow has them, true; of directories of these, false
	name        string          // of the open file, as Berth has it
	file        *os.File
	out         *bufio.Writer
}

// mlflowID is the id of a sweep's experiment. MLflow's own are numbers of 18 digits, too.
func mlflowID(sweepID string) (string, error) {
	const digits, hex, modulus = 15, 16, 1_000_000_000_000_000_000

	plain := strings.ReplaceAll(sweepID, "-", "")

	n, err := strconv.ParseUint(plain[:min(digits, len(plain))], hex, 64)
	if err != nil {
		return "", fmt.Errorf("reading the id of the sweep: %w", err)
	}

	return fmt.Sprintf("%018d", n%modulus), nil
}

func newMLflow(sweep client.Sweep, place string, root *os.Root) (*mlflow, error) {
	id := filepath.Base(place)
	m := &mlflow{root: root, place: place, experiment: id, runs: make(map[int]string)}

	files := map[string]string{
		"meta.yaml": yamlText("artifact_location", fileURL(m.place), "creation_time", sweep.CreatedAt.UnixMilli(), "experiment_id", id,
			"last_update_time", sweep.CreatedAt.UnixMilli(), "lifecycle_stage", "active", "name", sweep.Name+" "+short(sweep.ID)),
		"tags/berth.sweep_id": sweep.ID, "tags/berth.image": sweep.Image, "tags/berth.image_digest": sweep.ImageDigest, "tags/berth.created_by": sweep.CreatedBy,
	}
	if sweep.Objective != nil {
		files["tags/berth.objective"], files["tags/berth.goal"] = sweep.Objective.Metric, sweep.Objective.Goal
	}

	return m, m.writeAll(files)
}

func (m *mlflow) trial(t trialLine) error {
	run := strings.ReplaceAll(t.ID, "-", "")
	m.runs[t.Number] = run

	if err := m.root.MkdirAll(run+"/artifacts", 0o755); err != nil {
		return err
	}

	name := fmt.Sprintf("trial-%d", t.Number)

	var end any
	if t.FinishedAt != nil {
		end = t.FinishedAt.UnixMilli()
	}

	files := map[string]string{
		run + "/meta.yaml": yamlText("artifact_uri", fileURL(filepath.Join(m.place, run, "artifacts")), "end_time", end, "entry_point_name", "",
			"experiment_id", m.experiment, "lifecycle_stage", "active", "run_id", run, "run_name", name, "run_uuid", run, "source_name", "berth",
			"source_type", mlflowLocal, "source_version", "", "start_time", t.began().UnixMilli(), "status", mlflowStatus(t.State), "tags", []string{}, "user_id", "berth"),
	}

	for param, raw := range t.params {
		files[run+"/params/"+param] = rawText(raw)
	}

	for tag, value := range mlflowTags(t) {
		files[run+"/tags/"+tag] = value
	}

	if t.Value != nil {
		files[run+"/metrics/"+mlflowValue] = fmt.Sprintf("%d %s 0\n", t.began().UnixMilli(), floatWord(*t.Value))
	}

	if err := m.writeAll(files); err != nil {
		return err
	}

	if m.files != nil && t.Attempt > 0 { // later: the table of trials is being sent
		m.fetch = append(m.fetch, t)
	}

	return nil
}

// mlflowTags are what a trial has beside its parameters.
func mlflowTags(t trialLine) map[string]string {
	tags := map[string]string{
		"mlflow.runName": fmt.Sprintf("trial-%d", t.Number), "mlflow.source.name": "berth", "mlflow.note.content": t.Message,
		"berth.trial": strconv.Itoa(t.Number), "berth.trial_id": t.ID, "berth.state": t.State, "berth.failure_kind": t.FailureKind,
		"berth.attempts": strconv.Itoa(t.Attempts), "berth.host": t.Host, "berth.device": t.Device,
	}

	for name, bytes := range map[string]int64{
		"memory_reserved": t.MemoryReserved, "memory_peak": t.MemoryPeak, "device_reserved": t.DeviceReserved, "device_peak": t.DevicePeak,
	} {
		if bytes > 0 {
			tags["berth."+name+"_bytes"] = strconv.FormatInt(bytes, 10)
		}
	}

	for name, version := range t.datasets {
		tags["berth.dataset."+name] = version
	}

	maps.DeleteFunc(tags, func(_, value string) bool { return value == "" })

	return tags
}

func mlflowStatus(state string) int {
	switch client.TrialState(state) {
	case client.TrialStateSucceeded:
		return mlflowFinished
	case client.TrialStateFailed, client.TrialStateInfeasible:
		return mlflowFailed
	case client.TrialStateCanceled:
		return mlflowKilled
	case client.TrialStateRunning:
		return mlflowRunning
	default:
		return mlflowScheduled
	}
}

func (m *mlflow) point(p metricLine) error {
	run, known := m.runs[p.Trial]
	if !known { // the trial was made since
		return nil
	}

	if m.out == nil || p.Trial != m.trialNumber || p.Name != m.name {
		if err := m.begin(run, p); err != nil {
			return err
		}
	}

	_, err := fmt.Fprintf(m.out, "%d %s %d\n", p.At.UnixMilli(), floatWord(p.number()), p.Step)

	return err
}

// begin opens the file of a metric.
func (m *mlflow) begin(run string, p metricLine) error {
	if err := m.end(); err != nil {
		return err
	}

	if p.Trial != m.trialNumber {
		m.names = map[string]bool{mlflowValue: true}
	}

	m.trialNumber, m.name = p.Trial, p.Name
	name := path.Join(run, "metrics", m.fileName(p.Name))

	err := m.root.MkdirAll(path.Dir(name), 0o755)
	if err == nil {
		m.file, err = m.root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	}

	if err != nil {
		return err
	}

	m.out = bufio.NewWriter(m.file)

	return nil
}

// fileName is a metric's name as MLflow allows it (mlflow/utils/validation.py):
// other characters than these become _, and where one name is a directory of
// another, which a file cannot be, its slashes become points.
func (m *mlflow) fileName(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-. :/", r)) {
			return r
		}

		return '_'
	}, name)

	parts := strings.Split(clean, "/")
	for i, part := range parts {
		if strings.Trim(part, ".") == "" {
			parts[i] = "_" + part
		}

		if above := strings.Join(parts[:i], "/"); i > 0 && m.names[above] {
			return m.free(strings.Join(parts, "."))
		}
	}

	for i := 1; i < len(parts); i++ {
		m.names[strings.Join(parts[:i], "/")] = false
	}

	return m.free(strings.Join(parts, "/"))
}

// free is a name that no other metric of the trial has, and no directory.
func (m *mlflow) free(name string) string {
	for free, n := name, 2; ; n++ {
		if _, taken := m.names[free]; !taken {
			m.names[free] = true

			return free
		}

		free = fmt.Sprintf("%s_%d", name, n)
	}
}

func (m *mlflow) end() error {
	if m.file == nil {
		return nil
	}

	err := m.out.Flush()
	if closed := m.file.Close(); err == nil {
		err = closed
	}

	m.file, m.out = nil, nil

	return err
}

func (m *mlflow) close() error {
	if err := m.end(); err != nil {
		return err
	}

	for _, t := range m.fetch {
		if err := m.files(t, path.Join(m.runs[t.Number], "artifacts")); err != nil {
			return err
		}
	}

	return nil
}

// writeAll makes files with their directories.
func (m *mlflow) writeAll(files map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err := m.root.MkdirAll(path.Dir(name), 0o755)
		if err == nil {
			err = m.root.WriteFile(name, []byte(files[name]), 0o644)
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// floatWord is a number as Python reads it, also one that is not finite.
func floatWord(v float64) string { return strings.ToLower(strconv.FormatFloat(v, 'g', -1, 64)) }

// yamlText is a document of keys and values, each as JSON, which YAML can read.
func yamlText(pairs ...any) string {
	var b strings.Builder

	for i := 0; i+1 < len(pairs); i += 2 {
		value, err := json.Marshal(pairs[i+1])
		if err != nil { // none of ours fails
			continue
		}

		fmt.Fprintf(&b, "%s: %s\n", pairs[i], value)
	}

	return b.String()
}

func fileURL(dir string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String()
}
