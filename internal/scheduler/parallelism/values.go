package parallelism

import (
	"math"

	"github.com/berthml/berth"
)

// levels compares the companies of paces by the time that all waiting attempts would
// take in each: the seconds of their shapes, added up. Not all shapes were seen in all
// companies, so each company is compared with the best known one, by the shapes that
// both have: a shape with long trials does not make a company slow that happened to
// run more of it.
func levels(paces []berth.Pace, waiting map[string]int) []level {
	in := make(map[berth.Company]map[string]berth.Pace)

	for _, p := range paces {
		if p.Samples > 0 && p.Mean > 0 {
			if in[p.Company] == nil {
				in[p.Company] = make(map[string]berth.Pace)
			}

			in[p.Company][p.ShapeKey] = p
		}
	}

	best, most := berth.Company{}, 0.0

	for company, of := range in {
		if n := samples(of); n > most || n == most && before(company, best) {
			best, most = company, n
		}
	}

	all := make([]level, 0, len(in))
	for company, of := range in {
		if l, ok := against(of, in[best], waiting); ok {
			l.Company = company
			all = append(all, l)
		}
	}

	return all
}

func samples(of map[string]berth.Pace) (n float64) {
	for _, p := range of {
		n += float64(p.Samples)
	}

	return n
}

// against is the level of a company by the shapes that another one has, too; ok is
// false without such.
func against(of, other map[string]berth.Pace, waiting map[string]int) (l level, ok bool) {
	var here, there, variance float64

	for shape, p := range of {
		o, both := other[shape]
		if !both {
			continue
		}

		weight := float64(1 + waiting[shape])
		here += weight * p.Mean
		there += weight * o.Mean
		variance += weight * weight * p.Variance / float64(min(p.Samples, berth.PaceMemory))
		l.samples += float64(p.Samples)
	}

	if here <= 0 {
		return l, false
	}

	l.value = math.Log(there / here)
	l.err = math.Sqrt(variance) / here

	return l, true
}
