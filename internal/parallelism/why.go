package parallelism

import (
	"fmt"
	"math"
	"strings"

	"github.com/berthml/berth"
)

// why says what was measured, compared with what is chosen: how many trials end in
// the same time.
func why(levels []level, chosen level, advised berth.Company, trying bool) string {
	others := make([]string, 0, len(levels))

	for _, l := range levels {
		if l.Company == chosen.Company {
			continue
		}

		others = append(others, fmt.Sprintf("%s %.0f %% (%.0f attempts)", text(l.Company), 100*math.Exp(l.value-chosen.value), l.samples))
	}

	measured := fmt.Sprintf("measured: %s 100 %% (%.0f attempts)", text(chosen.Company), chosen.samples)
	if len(others) > 0 {
		measured += ", " + strings.Join(others, ", ")
	}

	if trying {
		return "tries " + text(advised) + "; " + measured
	}

	return text(advised) + "; " + measured
}

func text(c berth.Company) string {
	if c.Mode == berth.SharingMPS {
		return fmt.Sprintf("%d by MPS", c.AtOnce)
	}

	return fmt.Sprintf("%d by time slices", c.AtOnce)
}
