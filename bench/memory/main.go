// Command memory watches a sweep, and says of each shape whether Berth had predicted its need
// when its first attempt was placed, and how far the prediction lay from the measured peak.
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
)

func main() {
	server := flag.String("server", "http://127.0.0.1:8080", "address of Berth")
	sweep := flag.String("sweep", "", "name or id of the sweep, which may come later")
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
	placed      time.Time
	peak        int64
	device      int64
	outOfMemory bool
}

const (
	mostRows  = 500
	lookEvery = 200 * time.Millisecond
	patience  = time.Hour
)

func run(ctx context.Context, server, sweep string, numbers []string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	api, err := client.NewClientWithResponses(server + "/api/v1")
	if err != nil {
		return fmt.Errorf("reaching %s: %w", server, err)
	}

	predictions, err := watch(ctx, api, sweep)
	if err != nil {
		return err
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
				shape: a.ShapeKey, at: at[a.TrialNumber], placed: a.PlacedAt, peak: a.Usage.MemoryPeakBytes, device: a.Usage.DevicePeakBytes,
				outOfMemory: strings.HasSuffix(a.FailureKind, "_oom"),
			})
		}
	}

	report(os.Stdout, all, predictions)

	return nil
}

// watch reads what is predicted of each shape until the sweep has ended, in the order of time.
func watch(ctx context.Context, api *client.ClientWithResponses, sweep string) (map[string][]client.Footprint, error) {
	seen := make(map[string][]client.Footprint)

	for {
		probes, err := api.ListProbesWithResponse(ctx, &client.ListProbesParams{Limit: new(mostRows)})
		if err != nil || probes.JSON200 == nil {
			return nil, fmt.Errorf("reading what is known of shapes: %w", cmp.Or(err, errors.New(probes.Status())))
		}

		for _, probe := range probes.JSON200.Data {
			for _, f := range probe.Footprints {
				if f.Source == string(berth.FootprintPredicted) {
					seen[probe.ShapeKey] = append(seen[probe.ShapeKey], f)
				}
			}
		}

		now, err := api.GetSweepWithResponse(ctx, sweep)
		if err != nil {
			return nil, fmt.Errorf("reading sweep %s: %w", sweep, err)
		}

		if now.JSON200 != nil && now.JSON200.FinishedAt != nil {
			return seen, nil
		}

		time.Sleep(lookEvery)
	}
}

// report judges the first attempt of each shape by the last prediction before it was placed.
func report(out io.Writer, all []attempt, predictions map[string][]client.Footprint) {
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

		var f *client.Footprint

		for _, p := range predictions[a.shape] {
			if !p.MeasuredAt.After(a.placed) {
				f = &p
			}
		}

		if f == nil {
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

func mib(host, device int64) string {
	text := strconv.FormatInt(host>>20, 10)
	if device > 0 {
		text += fmt.Sprintf(", GPU %d", device>>20)
	}

	return text
}
