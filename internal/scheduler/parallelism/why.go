package parallelism

import (
	"fmt"
	"math"
	"strings"

	"github.com/berthml/berth"
)

// why explains the advice by its measurements: how many trials each company ends in the
// same time, compared with the chosen one, with the error by chance in percentage
// points. Where another mode was measured to be better, it says why that is not chosen.
func why(levels []level, chosen level, advised berth.Company, trying, kept bool) string {
	others := make([]string, 0, len(levels))

	for _, l := range levels {
		if l.Company == chosen.Company {
			continue
		}

		percent, off := 100*math.Exp(l.value-chosen.value), ""
		if by := math.Round(percent * chance(l, chosen)); by > 0 {
			off = fmt.Sprintf(" ± %.0f", by)
		}

		others = append(others, fmt.Sprintf("%s %.0f %%%s (%.0f attempts)", text(l.Company), percent, off, l.samples))
	}

	measured := fmt.Sprintf("measured: %s 100 %% (%.0f attempts)", text(chosen.Company), chosen.samples)
	if len(others) > 0 {
		measured += ", " + strings.Join(others, ", ")
	}

	if trying {
		return "tries " + text(advised) + "; " + measured
	}

	if kept {
		measured += "; the mode stays, as to run the GPU empty costs more than what waits would gain"
	}

	return text(advised) + "; " + measured
}

func text(c berth.Company) string {
	if c.Mode == berth.SharingMPS {
		return fmt.Sprintf("%d by MPS", c.AtOnce)
	}

	return fmt.Sprintf("%d by time slices", c.AtOnce)
}
