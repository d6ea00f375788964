package cli

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/berthml/berth"
)

// none stands for a missing value.
const none = "-"

// bytesText renders bytes as people read them, such as 1,310 MiB, where zero
// stands for unknown.
func bytesText(bytes int64) string {
	if bytes == 0 {
		return none
	}

	return berth.BytesText(bytes)
}

func cores(milli int64) string {
	return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64)
}

// coresUsed is cores where zero says that it could not be measured, because
// the machine was crowded.
func coresUsed(milli int64) string {
	if milli == 0 {
		return none
	}

	return cores(milli)
}

// grouped writes 1234567 as 1,234,567.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)

	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}

	return text
}

// number writes a value with at most six significant digits.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func maybeNumber(v *float64) string {
	if v == nil {
		return none
	}

	return number(*v)
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)

	return err == nil
}

// span writes a duration as people say it: 8 s, 92 s, 12 min, 3 h 20 min.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return none
	case d < 10*time.Second:
		return strconv.FormatFloat(math.Round(d.Seconds()*10)/10, 'f', -1, 64) + " s"
	case d < 3*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (o *options) ago(at time.Time) string {
	if at.IsZero() {
		return none
	}

	return span(max(o.now().Sub(at), 0)) + " ago"
}

// short is the beginning of an id, which is enough of it.
func short(id string) string { return id[:min(len(id), 8)] }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}

	return grouped(int64(n)) + " " + many
}
