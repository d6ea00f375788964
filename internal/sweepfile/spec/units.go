package spec

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec/document"
)

const auto = "auto"

// Sizes in bytes.
const (
	mib = 1 << 20
	pib = 1 << 50
)

// units of a size; MB is a million bytes and MiB 2^20, as the standards say.
var units = map[string]float64{
	"": 1, "B": 1,
	"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

const unitHint = "write a number with B, KiB, MiB, GiB, TiB, KB, MB, GB or TB, such as 1200MiB"

// size reads bytes, a text with a unit, or "auto", which is 0.
func (o *object) size(name string, low int64, code string) berth.Size {
	if o.isAuto(name) {
		return 0
	}

	n := o.field(name)
	if n.Kind != document.Number && !o.is(n, o.at(name), document.String) {
		return 0
	}

	number := strings.TrimRight(n.Text, "BKMGTi \t")
	factor, known := units[strings.TrimSpace(n.Text[len(number):])]
	v, err := strconv.ParseFloat(number, 64)

	switch {
	case !known || err != nil || math.IsNaN(v):
		o.add(n.Offset, o.at(name), codeUnit, "%q is no size; %s", shorten(n.Text), unitHint)
	case v*factor < float64(low):
		o.add(n.Offset, o.at(name), code, "%s is too small; at least %s are needed: %s",
			shorten(n.Text), berth.BytesText(low), unitHint)
	case v*factor > pib:
		o.add(n.Offset, o.at(name), codeRange, "%s is more than any machine has", shorten(n.Text))
	default:
		return berth.Size(math.Round(v * factor))
	}

	return 0
}

const day = 24 * time.Hour

// duration reads a text such as 90s, 10m, 2h or 1d.
func (o *object) duration(name string, low, high time.Duration, code string, fallback time.Duration) berth.Duration {
	n := o.field(name)
	if n == nil {
		return berth.Duration(fallback)
	}

	if n.Kind != document.Number && !o.is(n, o.at(name), document.String) {
		return berth.Duration(fallback)
	}

	d, ok := parseDuration(n.Text)

	switch {
	case !ok:
		o.add(n.Offset, o.at(name), codeUnit, "%q is no duration; write a number with s, m, h or d, such as 90s",
			shorten(n.Text))
	case d < low || d > high:
		o.add(n.Offset, o.at(name), code, "%s is out of range; write %s to %s", shorten(n.Text), low, durationText(high))
	default:
		return berth.Duration(d)
	}

	return berth.Duration(fallback)
}

// durationText writes whole days as days.
func durationText(d time.Duration) string {
	if d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}

	return d.String()
}

// parseDuration is time.ParseDuration with leading days.
func parseDuration(text string) (time.Duration, bool) {
	var days float64

	if number, rest, ok := strings.Cut(text, "d"); ok {
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || math.Abs(v) > 100*365 {
			return 0, false
		}

		days, text = v, rest
		if text == "" {
			text = "0"
		}
	}

	d, err := time.ParseDuration(text)

	return time.Duration(days*float64(day)) + d, err == nil
}

// cpus reads cores, such as 1.5, or "auto", which is zero.
func (o *object) cpus(name string) berth.CPUs {
	const low, high = 0.01, 1024

	if o.isAuto(name) {
		return 0
	}

	v := o.number(name)

	switch {
	case v == nil:
		return 0
	case *v < low || *v > high:
		o.add(o.field(name).Offset, o.at(name), codeRange, "%v cores are out of range; write %v to %v, or auto", *v, low, high)

		return 0
	}

	return berth.CPUs(math.Round(*v * 1000))
}
