package gpushare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/docker"
	"github.com/berthml/berth/internal/agent/gpu"
	"github.com/berthml/berth/internal/agent/nvml"
	"github.com/berthml/berth/internal/control/health"
)

// Findings say which GPUs a worker with such a data directory would hand out, and why not.
func Findings(ctx context.Context, d *docker.Docker, dataDir string) []health.Finding {
	driver, err := nvml.Open(ctx, nvml.Config{})
	if errors.Is(err, gpu.ErrNoDriver) {
		return []health.Finding{health.Fine("GPUs", "none: "+gpu.ErrNoDriver.Error())}
	}

	if err != nil {
		return []health.Finding{health.Broken("GPUs", "cannot be used", err.Error())}
	}
	defer driver.Close() //nolint:errcheck // the command ends

	inventory, err := driver.Inventory(ctx)
	if err != nil {
		return []health.Finding{health.Broken("GPUs", "cannot be listed", err.Error())}
	}

	missing, err := d.AddGPUs(ctx, inventory.Cards)
	if err != nil {
		return []health.Finding{health.Broken("GPUs", "Docker cannot be asked about them", err.Error())}
	}

	_, err = OpenMPS(dataDir)

	return gpuFindings(inventory, missing, err)
}

// gpuFindings has one finding for the driver, and one for each GPU. missing says
// by UUID why a container cannot have one, and mpsErr why MPS is not there.
func gpuFindings(inventory gpu.Inventory, missing map[string]string, mpsErr error) []health.Finding {
	findings := []health.Finding{health.Fine("GPUs", fmt.Sprintf("NVIDIA driver %s, CUDA %s", inventory.DriverVersion, inventory.CUDAVersion))}

	for _, warning := range inventory.Warnings {
		findings = append(findings, health.Finding{OK: true, Warn: true, Part: "GPUs", What: warning})
	}

	for _, card := range inventory.Cards {
		if card.MIG {
			continue
		}

		what := fmt.Sprintf("%s (%s), %s", strings.TrimSpace(card.Model+" "+card.Profile), card.UUID, berth.BytesText(card.MemoryBytes))

		if why := cmp.Or(card.Problem, missing[card.UUID]); why != "" {
			findings = append(findings, health.Broken("GPU", what+": takes no trials", why))
		} else {
			findings = append(findings, health.Fine("GPU", what+", "+sharingText(card, mpsErr)))
		}
	}

	return findings
}

// sharingText says how trials share a GPU of a worker with default flags.
func sharingText(card gpu.Card, mpsErr error) string {
	switch why := WhyNoMPS(card, os.Geteuid()); {
	case why != "":
		return "shared by time slices: " + why
	case mpsErr != nil:
		return "shared by time slices: " + mpsErr.Error()
	default:
		return "shared by MPS"
	}
}
