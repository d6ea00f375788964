package berth

import (
	"strconv"
	"strings"
)

// BytesText writes a number of bytes for the user: whole MiB as 1,310 MiB, less
// than 1 MiB as KiB, and less than 1 KiB as bytes. It rounds to the nearest
// unit, so that figures of one message can be compared.
func BytesText(n int64) string {
	switch {
	case n < 0:
		return "-" + BytesText(-n)
	case n < 1<<10:
		return strconv.FormatInt(n, 10) + " bytes"
	case n < 1<<20:
		return grouped((n+1<<9)>>10) + " KiB"
	default:
		return grouped((n+1<<19)>>20) + " MiB"
	}
}

// grouped writes 1234567 as 1,234,567. The number is not negative.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)

	var b strings.Builder

	for i, digit := range text {
		if i > 0 && (len(text)-i)%3 == 0 {
			b.WriteByte(',')
		}

		b.WriteRune(digit)
	}

	return b.String()
}
