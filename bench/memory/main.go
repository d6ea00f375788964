// Command memory reads a sweep that has ended, and says of each shape whether its need could
// be predicted from the shapes that were measured when its first attempt was placed, and how
// far the prediction lay from the measured peak.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/scheduler/memory"
)

func main() {
	server := flag.String("server", "http://127.0.0.1:8080", "address of Berth")
	sweep := flag.String("sweep", "", "name or id of the sweep")
	numbers := flag.String("numbers", "", "the parameters that decide memory, with commas")
	flag.Parse()

	if err := run(context.Background(), *server, *sweep, strings.Split(*numbers, ",")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// attempt is a measured attempt of a trial.
type attempt struct {
	shape       string
	at          []float64
	placed, end time.Time
	peak        int64
	device      int64
	outOfMemory bool
}

const mostRows = 500

func run(ctx context.Context, server, sweep string, numbers []string) error {
	api, err := client.NewClientWithResponses(server + "/api/v1")
	if err != nil {
		return fmt.Errorf("reaching %s: %w", server, err)
	}

	trials, err := api.ListTrialsWithResponse(ctx, sweep, &client.ListTrialsParams{Limit: new(mostRows)})
	if err != nil || trials.JSON200 == nil {
		return fmt.Errorf("reading trials of %s: %w", sweep, cmp.Or(err, errors.New(trials.Status())))
	}

	attempts, err := api.ListSweepAttemptsWithResponse(ctx, sweep, &client.ListSweepAttemptsParams{Limit: new(mostRows)})
	if err != nil || attempts.JSON200 == nil {
		return fmt.Errorf("reading attempts of %s: %w", sweep, cmp.Or(err, errors.New(attempts.Status())))
	}

	at := make(map[int][]float64)

	for _, trial := range trials.JSON200.Data {
		for _, name := range numbers {
			n, _ := trial.Params[name].Number()
			at[trial.Number] = append(at[trial.Number], n)
		}
	}

	var all []attempt

	for _, a := range attempts.JSON200.Data {
		if a.FinishedAt != nil && a.Usage.MemoryPeakBytes > 0 {
			all = append(all, attempt{
				shape: a.ShapeKey, at: at[a.TrialNumber], placed: a.PlacedAt, end: *a.FinishedAt, peak: a.Usage.MemoryPeakBytes, device: a.Usage.DevicePeakBytes,
				outOfMemory: strings.HasSuffix(a.FailureKind, "_oom"),
			})
		}
	}

	report(os.Stdout, all)

	return nil
}

// report judges the first attempt of each shape.
func report(out io.Writer, all []attempt) {
	slices.SortFunc(all, func(a, b attempt) int { return a.placed.Compare(b.placed) })

	var (
		measured, below, outOfMemory int
		slack                        []float64
		seen                         = make(map[string]bool)
	)

	fmt.Fprintln(out, "| shape | predicted MiB | measured MiB |\n|---|---|---|")

	for _, a := range all {
		if a.outOfMemory {
			outOfMemory++
		}

		if seen[a.shape] {
			continue
		}

		seen[a.shape] = true

		f, ok := memory.NewFamily(measuredBefore(all, a.placed)).Predict(a.shape, a.at)
		if !ok {
			measured++

			fmt.Fprintf(out, "| %v | measures | %s |\n", a.at, mib(a.peak, a.device))

			continue
		}

		if f.MemoryPeakBytes < a.peak || f.DevicePeakBytes < a.device {
			below++
		}

		slack = append(slack, float64(f.MemoryPeakBytes+f.DevicePeakBytes)/float64(a.peak+a.device)-1)

		fmt.Fprintf(out, "| %v | %s | %s |\n", a.at, mib(f.MemoryPeakBytes, f.DevicePeakBytes), mib(a.peak, a.device))
	}

	slices.Sort(slack)

	if len(slack) > 0 {
		fmt.Fprintf(out, "\n%d shapes: %d measured, %d predicted, %d of them below the measured peak; median slack %.0f %%; %d attempts ran out of memory\n",
			len(seen), measured, len(slack), below, 100*slack[len(slack)/2], outOfMemory)
	}
}

// measuredBefore are the shapes with an attempt that had ended, with their largest peaks.
func measuredBefore(all []attempt, at time.Time) (siblings []memory.Sibling) {
	index := make(map[string]int)

	for _, a := range all {
		if !a.end.Before(at) || a.outOfMemory {
			continue
		}

		i, found := index[a.shape]
		if !found {
			i = len(siblings)
			index[a.shape] = i
			siblings = append(siblings, memory.Sibling{At: a.at})
		}

		f := &siblings[i].Footprint
		f.Class = berth.ClassCPU
		f.MemoryPeakBytes, f.DevicePeakBytes = max(f.MemoryPeakBytes, a.peak), max(f.DevicePeakBytes, a.device)
	}

	return siblings
}

func mib(host, device int64) string {
	text := strconv.FormatInt(host>>20, 10)
	if device > 0 {
		text += fmt.Sprintf(", GPU %d", device>>20)
	}

	return text
}
