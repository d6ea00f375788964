package placer

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/parallelism"
)

// exactShapes is how many shapes a mix tells apart. With more of them each company of
// each would need many trials, so their templates stand for them.
const exactShapes = 3

// group is the requests of one sweep that ask for the same.
type group struct {
	sweep     string
	loaded    berth.Loaded
	demands   berth.Demands
	guessed   bool // memory.Guesses
	heavy     bool // its shape was measured to fill much of a GPU
	cpusGiven bool // the sweep file says how many cores each gets
	waiting   int
}

// pool is the groups of requests that may use GPUs of the same classes, of sweeps that
// take trials now.
type pool struct {
	groups []*group
	loaded []berth.Loaded             // each shape once; of more than exactShapes as many as say so, and one of each template
	heavy  bool                       // one of the shapes was measured to fill much of a GPU
	sizes  map[size]bool              // what its requests ask for
	barred map[berth.SharingMode]bool // modes in which some of it cannot be, or only alone
	limits map[string]float64         // seconds that an attempt may take, by shape and by template
	queue  map[string]int             // how many wait, by shape and by template
	coming int                        // how many of them may start now, by the limits of their sweeps
	later  int                        // trials of the same sweeps that have yet to ask for a place

	maxParallel int  // of its sweeps together
	unlimited   bool // one of its sweeps has no max_parallel
}

// size is a request's demand in one mode.
type size struct {
	mode      berth.SharingMode
	demand    berth.Demand
	cpusGiven bool
}

// poolOf is the pool of a GPU's classes, in the order of its modes.
func poolOf(groups []*group, sweeps map[string]berth.SweepUse, dev *berth.Device) *pool {
	p := &pool{
		sizes: make(map[size]bool), barred: make(map[berth.SharingMode]bool), limits: make(map[string]float64), queue: make(map[string]int),
	}
	modes, shapes, templates, counted := dev.Modes(), make(map[string]bool), make(map[string]bool), make(map[string]bool)

	for _, g := range groups {
		use := sweeps[g.sweep]
		if !use.TakesTrials() ||
			!slices.ContainsFunc(modes, func(m berth.SharingMode) bool { _, can := g.demands[dev.ClassBy(m)]; return can }) { //nolint:nlreturn // one line
			continue
		}

		p.groups = append(p.groups, g)

		if !counted[g.sweep] {
			counted[g.sweep] = true
			p.later += use.Left
			p.maxParallel += use.MaxParallel
			p.unlimited = p.unlimited || use.MaxParallel == 0
		}

		if l := g.loaded; !templates[l.Template] || !shapes[l.ShapeKey] && len(shapes) <= exactShapes {
			shapes[l.ShapeKey], templates[l.Template], p.loaded = true, true, append(p.loaded, l)
		}

		p.heavy = p.heavy || g.heavy
		coming := g.waiting
		if use.MaxParallel > 0 {
			coming = min(coming, max(use.MaxParallel-use.Running, 0))
		}

		p.coming += coming
		p.size(g, dev, modes, coming > 0)

		limit := time.Duration(use.TrialLimit).Seconds()

		for _, key := range []string{g.loaded.ShapeKey, g.loaded.Template} {
			p.queue[key] += g.waiting

			if least, known := p.limits[key]; limit > 0 && (!known || limit < least) {
				p.limits[key] = limit
			}
		}
	}

	return p
}

// size notes a group's demand and its modes, if it may start now. A group that would
// have the GPU alone only in a mode that the rule would not choose is not forced into
// it.
func (p *pool) size(g *group, dev *berth.Device, modes []berth.SharingMode, comes bool) {
	first, there := g.demands[dev.ClassBy(modes[0])]

	for _, m := range modes {
		d, can := g.demands[dev.ClassBy(m)]
		if can {
			p.sizes[size{m, d, g.cpusGiven}] = true
		}

		if comes && (!can || d.ExclusiveDevice && there && !first.ExclusiveDevice) {
			p.barred[m] = true
		}
	}
}

// mix is the shapes that run on a GPU and wait for it, the key of its stored
// paces.
type mix struct {
	key        string
	byTemplate bool
}

// own is the key of a shape's paces.
func (m mix) own(l berth.Loaded) string {
	if m.byTemplate {
		return l.Template
	}

	return l.ShapeKey
}

// mixOf is the mix of shapes, or of their templates where there are many shapes.
func mixOf(loaded ...[]berth.Loaded) mix {
	keys, m := make(map[string]bool), mix{}

	for _, some := range loaded {
		for _, l := range some {
			keys[l.ShapeKey] = true
		}
	}

	if len(keys) > exactShapes {
		m.byTemplate = true

		clear(keys)

		for _, some := range loaded {
			for _, l := range some {
				keys[l.Template] = true
			}
		}
	}

	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(maps.Keys(keys)), "\n")))
	m.key = hex.EncodeToString(sum[:])

	return m
}

// loadOf is a shape with the template that stands for it. A shape measured to fill much of a
// GPU counts by itself: the best number for the other shapes of its sweep would be far too
// large for it.
func loadOf(shape, template string, known map[string]berth.Footprints) berth.Loaded {
	if fills(known[shape]) {
		template = berth.HeavyTemplate(template)
	}

	return berth.Loaded{ShapeKey: shape, Template: template}
}

// fills reports whether a shape was measured to fill much of a GPU.
func fills(known berth.Footprints) bool {
	for _, f := range known {
		if f.DeviceActivity.Busiest() >= parallelism.HeavyMilli {
			return true
		}
	}

	return false
}
