package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
)

// curve is what one run measured: value and seconds of step i+1 at index i. Seconds are those
// of the step alone. Smaller values are better.
type curve struct {
	values, seconds []float64
}

// final returns the value of the last step.
func (c *curve) final() float64 { return c.values[len(c.values)-1] }

// task is a set of runs from which sweeps are drawn.
type task struct {
	name string
	runs []curve
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
			t.runs = append(t.runs, curve{})
		}

		lastTask, lastRun = row[0], row[1]

		if err := t.runs[len(t.runs)-1].add(row[2:]); err != nil {
			return nil, fmt.Errorf("task %q, run %q: %w", row[0], row[1], err)
		}
	}
}

// add takes in step, value and seconds of the next step.
func (c *curve) add(row []string) error {
	if want := strconv.Itoa(len(c.values) + 1); row[0] != want {
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

	c.values, c.seconds = append(c.values, numbers[0]), append(c.seconds, numbers[1])

	return nil
}
