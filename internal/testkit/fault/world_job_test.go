package fault_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

// script is the actions of an attempt's program.
type script struct {
	lines  int
	every  time.Duration
	code   int
	sturdy bool // takes no notice of SIGTERM
}

func (w *world) script(attemptID string) script {
	h := fnv.New64a()
	_, _ = h.Write([]byte(attemptID))
	r := rand.New(rand.NewPCG(w.seed, h.Sum64()))

	return script{
		lines: 1 + r.IntN(20), every: time.Duration(r.IntN(3000)) * time.Millisecond,
		code: []int{0, 0, 0, 0, 1, 137}[r.IntN(6)], sturdy: r.IntN(5) == 0,
	}
}

func (s script) output() string {
	var text strings.Builder

	for n := range s.lines {
		fmt.Fprintf(&text, "acc=%d\n", n+1)
	}

	return text.String()
}

// verdict reports whether an attempt's outcome waits to be committed.
func (w *world) verdict(attemptID string) bool {
	_, err := os.Stat(filepath.Join(w.dir, "attempts", attemptID, "verdict.json"))

	return err == nil
}

func (w *world) program(p *fake.Process) int {
	s := w.script(p.Launch.AttemptID)

	if w.verdict(p.Launch.AttemptID) {
		w.fail("I3: %s runs again, and its verdict was written down", p.Launch.AttemptID)
	}

	w.write(p.Launch.AttemptID, "part")

	for n := range s.lines {
		if !p.Sleep(s.every) && !s.sturdy {
			return 143
		}

		select {
		case <-p.Killed():
			return 137
		default:
		}

		p.Print(berth.Stdout, fmt.Sprintf("acc=%d\n", n+1))
	}

	w.write(p.Launch.AttemptID, "whole")

	return s.code
}

// output is the file that each program writes.
func (w *world) output(attemptID string) string {
	return filepath.Join(w.dir, "attempts", attemptID, "out", "base")
}

func (w *world) write(attemptID, text string) {
	if err := os.WriteFile(w.output(attemptID), []byte(text), 0o600); err != nil {
		w.fail("writing: %v", err)
	}
}

// gauge measures a container.
type gauge struct {
	*worker

	w *world
	c berth.Container
}

func (g gauge) Read() (berth.MemorySample, error) {
	select {
	case <-g.Ended():
		return berth.MemorySample{}, errCrash
	default:
	}

	for _, c := range g.w.docker.Live() {
		if c.ID == g.c.ID {
			if time.Since(c.StartedAt) < 2*time.Second {
				return berth.MemorySample{WorkingSetBytes: firstPeak, CPU: time.Second}, nil
			}

			return berth.MemorySample{WorkingSetBytes: laterPeak, CPU: time.Since(c.StartedAt)}, nil
		}
	}

	return berth.MemorySample{}, errors.New("gone")
}
