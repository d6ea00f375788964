package imports

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/argv"
)

// file is a sweep file with the settings that an import can find, in the order in which they are written.
type file struct {
	Version    int                `json:"version"`
	Name       string             `json:"name"`
	Image      string             `json:"image"`
	Entrypoint bool               `json:"entrypoint,omitempty"`
	Command    []string           `json:"command"`
	Parameters []berth.Parameter  `json:"parameters,omitempty"`
	Enqueue    []berth.Assignment `json:"enqueue,omitempty"`
	Search     search             `json:"search"`
	Objective  *objective         `json:"objective,omitempty"`
	EarlyStop  *berth.EarlyStop   `json:"early_stop,omitempty"`
	Limits     limits             `json:"limits,omitzero"`
	Metrics    berth.MetricsSpec  `json:"metrics,omitzero"`
}

type search struct {
	Algorithm string `json:"algorithm"`
	Seed      int64  `json:"seed,omitempty"`
}

type objective struct {
	Metric   string         `json:"metric"`
	Goal     berth.Goal     `json:"goal"`
	Target   *number        `json:"target,omitempty"`
	Strategy berth.Strategy `json:"strategy,omitempty"`
}

type limits struct {
	MaxTrials       int `json:"max_trials,omitempty"`
	MaxParallel     int `json:"max_parallel,omitempty"`
	MaxFailedTrials int `json:"max_failed_trials,omitempty"`
}

// draft is a sweep file in the making.
type draft struct {
	file

	source Source
	tool   string
	ours   map[string]string // our names of parameters, by those of the source
	flags  []string          // one for each parameter, such as --lr={{lr}}
	losses []Loss
	err    error // of the first object that cannot be read
}

// allValues is the file of all values in a trial's container.
const allValues = "/trial/in/params.json"

// setAlgorithm sets the algorithm by the source's name of it.
func (d *draft) setAlgorithm(key, theirs string, known map[string]string) {
	if d.Search.Algorithm = cmp.Or(known[theirs], berth.SearchAuto); known[theirs] == "" {
		d.lose(key, "%s becomes auto: a Gaussian process or TPE; early_stop stops bad trials early", cmp.Or(theirs, "no name"))
	}
}

// finish adds the things that a sweep file must have.
func (d *draft) finish() {
	const fewTrials, gridCount = 20, 5 // guesses, enough for a first look

	base := path.Base(strings.ReplaceAll(d.source.Name, `\`, "/"))
	d.Name = cmp.Or(sweepName(d.Name), sweepName(strings.TrimSuffix(base, path.Ext(base))), "imported")
	if d.Version = 1; d.Image == "" {
		d.Image = berth.Placeholder
		d.lose("image", "%s names none here; `berth init SCRIPT` writes a Dockerfile", d.tool)
	}
	if len(d.Command) == 0 {
		d.Command = append([]string{"python3", berth.Placeholder}, d.flags...)
		d.lose("command", "%s names no program here: replace %s by the script; it gets the values as flags", d.tool, berth.Placeholder)
	}
	var missing []string // Berth refuses a search of values that no program gets
	for i, p := range d.Parameters {
		if !slices.Contains(argv.Names(d.Command), p.Name) {
			missing, d.Command = append(missing, p.Name), append(d.Command, d.flags[i])
		}
	}
	if len(missing) > 0 {
		d.lose("command", "it does not pass %s, so flags are added: let the script read them, or open %s, which has all values", strings.Join(missing, ", "), allValues)
	}
	if d.Limits.MaxTrials == 0 && d.Search.Algorithm != berth.SearchGrid {
		d.Limits.MaxTrials = fewTrials
		d.lose("max_trials", "the file names no number of trials: %d is a guess", fewTrials)
	}
	for i := range d.Parameters {
		p := &d.Parameters[i]
		if _, listed := p.Points(berth.SearchGrid); d.Search.Algorithm == berth.SearchGrid && p.Searched() && !listed {
			p.Count = gridCount
			d.lose(p.Name, "a grid needs points: count: %d is a guess", gridCount)
		}
	}
}

// addWord adds an element to the command. A value alone is joined to its option: it can begin with -.
func (d *draft) addWord(word string) {
	if last := len(d.Command) - 1; last >= 0 && strings.HasPrefix(word, "{{") && strings.HasPrefix(d.Command[last], "--") && !strings.Contains(d.Command[last], "=") {
		d.Command[last] += "=" + word
	} else {
		d.Command = append(d.Command, word)
	}
}

// literal is a text of the source, in which {{ would begin a placeholder.
func (d *draft) literal(text string) string {
	if strings.Contains(text, "{{") {
		d.lose("command", "{{ begins a placeholder here: write %q without it", text)
		return berth.Placeholder
	}
	return text
}

var notInTitle = regexp.MustCompile(`[^\p{L}\p{M}\p{N} ._:,+=()-]+`)

// sweepName is a name of at most 200 characters that a sweep may have; empty = nothing is left.
func sweepName(text string) string {
	return fmt.Sprintf("%.200s", strings.Trim(notInTitle.ReplaceAllString(text, "-"), " ._:,+=(-"))
}

// text writes the draft. It goes through JSON, which keeps names and order.
func (d *draft) text() (string, error) {
	var (
		document  yaml.Node
		out, body bytes.Buffer
	)

	text, err := json.Marshal(d.file)
	if err := errors.Join(err, yaml.Unmarshal(text, &document)); err != nil {
		return "", err
	}
	restyle(document.Content[0], 0)

	encoder := yaml.NewEncoder(&body)
	encoder.SetIndent(2)
	err = encoder.Encode(&document)

	fmt.Fprintf(&out, "# Written by berth sweep import from %s, of %s. Check it: berth sweep validate -f FILE.\n# Left out or changed:\n", oneLine(d.source.Name), d.tool)
	for _, l := range d.losses {
		fmt.Fprintf(&out, "#   %s: %s\n", l.Key, l.Instead)
	}
	for line := range strings.Lines(body.String()) {
		if strings.Contains(line, berth.Placeholder) {
			line = strings.TrimSuffix(line, "\n") + "   # " + d.tool + " does not say it\n"
		}
		out.WriteString(line)
	}
	return out.String(), err
}

// restyle writes each object below the first level, and each list in one, on one line. It
// drops the quotes of JSON except of texts with unusual characters.
func restyle(n *yaml.Node, depth int) {
	switch n.Style = 0; {
	case n.Kind != yaml.ScalarNode && (depth > 1 || depth == 1 && n.Kind == yaml.MappingNode):
		n.Style = yaml.FlowStyle
	case n.Tag == "!!str" && strings.ContainsAny(n.Value, "{}[],&*#?|<>%@`'\n "):
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, kid := range n.Content {
		restyle(kid, depth+1)
	}
}
