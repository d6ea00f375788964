package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// checkpointFile is the state from which a job of the contract resumes.
const checkpointFile = "/trial/checkpoint/state"

// Values that checkpoint reports: whether the environment's word on resuming
// holds.
const (
	resumeRight  = 1 // no state to resume from, or that of a run of the same trial
	resumeProbe  = 2 // a probe's checkpoint exists: the result would be contaminated
	resumeAbsent = 3 // the environment says resume, and no state exists
)

// checkpoint stands for a script that saves and resumes.
func checkpoint(lasts time.Duration) (int, error) {
	right := resumeRight
	state, err := os.ReadFile(checkpointFile)

	switch {
	case err == nil && string(state) == "probe":
		right = resumeProbe
	case err != nil && os.Getenv("TRIAL_RESUME") == "1":
		right = resumeAbsent
	}

	if code := rest(lasts / 2); code != 0 {
		return code, nil
	}

	if err := os.WriteFile(checkpointFile, []byte(os.Getenv("TRIAL_MODE")), 0o600); err != nil {
		return 1, err
	}

	if code := rest(lasts / 2); code != 0 {
		return code, nil
	}

	say(fmt.Sprintf(`{"val": %d}`, right))

	return 0, nil
}

// epochs stands for a script that says how it goes.
func epochs(lasts time.Duration, value string, mib int) (int, error) {
	const last = 4

	end, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 2, err
	}

	if err := take(mib); err != nil {
		return 1, err
	}

	for epoch := 1; epoch <= last; epoch++ {
		if code := rest(lasts / last); code != 0 {
			return code, nil
		}

		say(fmt.Sprintf(`{"epoch": %d, "val": %g}`, epoch, end*float64(epoch)/last))
	}

	return 0, nil
}

// train stands for a training script: memory first, then time, then a result.
func train(lasts time.Duration, value string, mib int) (int, error) {
	if err := take(mib); err != nil {
		return 1, err
	}

	if code := rest(lasts); code != 0 {
		return code, nil
	}

	say(`{"val": ` + value + `}`)

	return 0, nil
}

// late stands for a script that takes most of its memory near its end.
func late(lasts time.Duration, value string, mib int) (int, error) {
	if code := rest(lasts * 6 / 10); code != 0 {
		return code, nil
	}

	return train(lasts*4/10, value, mib)
}

// caught stands for a script that ends after an allocation which no machine
// could make.
func caught(lasts time.Duration) int {
	if code := rest(lasts); code != 0 {
		return code
	}

	fmt.Fprintln(os.Stderr, strings.Join([]string{
		"Traceback (most recent call last):",
		`  File "train.py", line 7, in <module>`,
		"    x = np.zeros((1000000, 1000000))",
		"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.28 TiB for an array with shape (1000000, 1000000) and data type float64",
		"MemoryError",
	}, "\n"))

	return 1
}

// rest waits; it returns the exit code of a SIGTERM during the wait, else 0.
func rest(lasts time.Duration) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)

	defer signal.Stop(signals)

	select {
	case <-signals:
		return 128 + int(syscall.SIGTERM)
	case <-time.After(lasts):
		return 0
	}
}

// reads is train for a trial with stages whose outputs are these texts, by NAME=TEXT.
func reads(lasts time.Duration, value string, texts []string) (int, error) {
	for _, pair := range texts {
		name, want, _ := strings.Cut(pair, "=")

		got, err := os.ReadFile("/trial/stages/" + name + "/text")
		if err != nil || string(got) != want {
			return 9, fmt.Errorf("stage %s wrote %q: %w", name, got, err)
		}
	}

	return train(lasts, value, 8)
}
