package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/berthml/berth/internal/script"
)

// source is the script and what lies beside it.
type source struct {
	path         string // absolute; in the image when dir is empty
	dir          string // absolute, without links; empty = the script is in the image only
	text         []byte
	all          string   // the script's text and that of the modules beside it that it needs
	files        []string // those modules: files and packages, by name
	requirements bool     // requirements.txt is there
}

const (
	maxScript  = 4 << 20
	maxModules = 200 // files that are read of the directory
)

// read reads the script, unless it is a path in the image.
func (r *initiation) read() error {
	info, err := os.Stat(r.script)

	switch {
	case err != nil && r.image != "" && filepath.IsAbs(r.script):
		return nil
	case err != nil, info.IsDir():
		return r.noScript()
	case filepath.Ext(r.script) != ".py":
		return exitf(ExitUsage, "%s is no Python script (.py); for another program copy a sweep file of examples/, and check it with `berth sweep validate -f sweep.yaml`", r.script)
	case info.Size() > maxScript:
		return exitf(ExitUsage, "%s has %d bytes, which is no script that a person wrote", r.script, info.Size())
	}

	text, err := os.ReadFile(r.script)
	if err != nil {
		return exitf(ExitUsage, "reading the script: %w", err)
	}

	absolute, err := filepath.Abs(r.script)
	if err != nil {
		return exitf(ExitUsage, "finding the script: %w", err)
	}

	dir, err := filepath.EvalSymlinks(filepath.Dir(absolute))
	if err != nil {
		return exitf(ExitUsage, "finding the script: %w", err)
	}

	r.source = &source{path: filepath.Join(dir, filepath.Base(absolute)), dir: dir, text: text}
	r.source.findModules()

	_, err = os.Stat(filepath.Join(dir, "requirements.txt"))
	r.source.requirements = err == nil

	return nil
}

// noScript names the scripts that are there.
func (r *initiation) noScript() error {
	dir := r.script
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = filepath.Dir(r.script)
	}

	found, _ := filepath.Glob(filepath.Join(dir, "*.py")) // the pattern is well formed

	const few = 5

	there := ""
	if len(found) > 0 {
		there = "; here are " + strings.Join(found[:min(len(found), few)], ", ")
	}

	return exitf(ExitUsage, "there is no script %q%s. Type `berth init PATH/train.py`, or with --image a path in that image that begins with /", r.script, there)
}

// importLine matches what a file imports.
var importLine = regexp.MustCompile(`(?m)^\s*(?:from\s+\.*([A-Za-z_]\w*)|import\s+([A-Za-z_]\w*))`)

// findModules finds the modules beside the script that it needs, and theirs.
func (s *source) findModules() {
	texts := []string{string(s.text)}
	seen := map[string]bool{strings.TrimSuffix(filepath.Base(s.path), ".py"): true}

	for i := 0; i < len(texts) && len(texts) < maxModules; i++ {
		for _, match := range importLine.FindAllStringSubmatch(texts[i], -1) {
			name := match[1] + match[2]
			if seen[name] {
				continue
			}

			seen[name] = true

			if text, err := os.ReadFile(filepath.Join(s.dir, name+".py")); err == nil && len(text) <= maxScript { //nolint:gosec // G304: beside the user's own script
				s.files = append(s.files, name+".py")
				texts = append(texts, string(text))

				continue
			}

			inside, _ := filepath.Glob(filepath.Join(s.dir, name, "*.py")) // the pattern is well formed: a name has no magic
			if len(inside) == 0 {
				continue
			}

			s.files = append(s.files, name)

			for _, file := range inside[:min(len(inside), maxModules)] {
				if text, err := os.ReadFile(file); err == nil && len(text) <= maxScript { //nolint:gosec // G304: beside the user's own script
					texts = append(texts, string(text))
				}
			}
		}
	}

	slices.Sort(s.files)
	s.all = strings.Join(texts, "\n")
}

// modules are the names of the modules beside the script.
func (s *source) modules() []string {
	out := []string{strings.TrimSuffix(filepath.Base(s.path), ".py")}
	for _, file := range s.files {
		out = append(out, strings.TrimSuffix(file, ".py"))
	}

	return out
}

// readInImage reads a script that only the image has.
func (r *initiation) readInImage() error {
	r.source = &source{path: r.script}
	looked, err := r.look(script.Options{Script: r.script, Source: true}, false)
	if err != nil {
		return err
	}

	report := script.ReadReport(looked.Stdout)
	if report.Trouble != nil || report.Look.Source == "" {
		return exitf(ExitUsage, "there is no script %q, neither here nor in image %q; type `docker run --rm --entrypoint ls %s -l %s` to see what is there",
			r.script, r.looksIn, r.looksIn, filepath.Dir(r.script))
	}

	r.source.text = []byte(report.Look.Source)
	r.source.all = report.Look.Source

	return nil
}

var noSlug = regexp.MustCompile(`[^a-z0-9]+`)

// slugOf makes a name that images and sweeps can have.
func slugOf(text string) string {
	slug := strings.Trim(noSlug.ReplaceAllString(strings.ToLower(text), "-"), "-")
	if slug == "" || slug[0] >= '0' && slug[0] <= '9' {
		slug = strings.Trim("sweep-"+slug, "-")
	}

	const longest = 60

	return strings.Trim(slug[:min(len(slug), longest)], "-")
}
