package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"github.com/berthml/berth/internal/search/simulate"
)

// task is a set of runs from which sweeps are drawn.
type task struct {
	name string
	runs []simulate.Run
}

// readTasks reads a file of bench/stopping/curves.py.
func readTasks(path string) ([]task, error) {
	file, err := os.Open(path) //nolint:gosec // G304: below an argument
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read

	tasks, err := parseTasks(file)
	if err != nil {
		return nil, fmt.Errorf("reading curves %q: %w", path, err)
	}

	return tasks, nil
}

// parseTasks keeps the order of tasks and runs. The rows of a run follow each other by step
// from 1, and the runs of a task follow each other.
func parseTasks(text io.Reader) (tasks []task, err error) {
	rows := csv.NewReader(text)
	rows.FieldsPerRecord = 5

	if _, err := rows.Read(); err != nil {
		return nil, fmt.Errorf("reading header: %w", err)
	}

	var lastTask, lastRun string

	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return tasks, nil
		} else if err != nil {
			return nil, err
		}

		if len(tasks) == 0 || row[0] != lastTask {
			tasks, lastRun = append(tasks, task{name: row[0]}), ""
		}

		t := &tasks[len(tasks)-1]
		if len(t.runs) == 0 || row[1] != lastRun {
			t.runs = append(t.runs, simulate.Run{})
		}

		lastTask, lastRun = row[0], row[1]

		if err := add(&t.runs[len(t.runs)-1], row[2:]); err != nil {
			return nil, fmt.Errorf("task %q, run %q: %w", row[0], row[1], err)
		}
	}
}

// add takes in step, value and seconds of the next step.
func add(r *simulate.Run, row []string) error {
	if want := strconv.Itoa(len(r.Values) + 1); row[0] != want {
		return fmt.Errorf("step %q follows, not %s", row[0], want)
	}

	var numbers [2]float64

	for i, text := range row[1:] {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("step %s has %q, which is no finite number", row[0], text)
		}

		numbers[i] = x
	}

	r.Values, r.Seconds = append(r.Values, numbers[0]), append(r.Seconds, numbers[1])

	return nil
}
