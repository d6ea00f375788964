package cli

import (
	"crypto/sha256"
	"encoding/hex"
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

	hashes map[string]string // SHA-256 of the files of those modules, by path beside the script
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

	resolved, err := filepath.EvalSymlinks(absolute) // as Python does: it looks for modules there
	if err != nil {
		return exitf(ExitUsage, "finding the script: %w", err)
	}

	dir := filepath.Dir(resolved)
	r.source = &source{path: resolved, dir: dir, text: text, hashes: map[string]string{}}
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

// importLine matches what a file imports, also in ways that only local modules are.
var importLine = regexp.MustCompile(`(?m)^\s*(?:from\s+\.*\s*([A-Za-z_]\w*)|from\s+\.+\s+import\s+([\w, \t]+)|import\s+([A-Za-z_][\w., \t]*))`)

// findModules finds the modules beside the script that it needs, and theirs.
func (s *source) findModules() {
	texts := []string{string(s.text)}
	seen := map[string]bool{strings.TrimSuffix(filepath.Base(s.path), ".py"): true}

	for i := 0; i < len(texts) && len(texts) < maxModules; i++ {
		for _, match := range importLine.FindAllStringSubmatch(texts[i], -1) {
			for name := range strings.SplitSeq(match[1]+match[2]+match[3], ",") {
				name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
				name, _, _ = strings.Cut(name, ".")

				if name != "" && !seen[name] {
					seen[name] = true
					texts = append(texts, s.module(name)...)
				}
			}
		}
	}

	slices.Sort(s.files)
	s.all = strings.Join(texts, "\n")
}

// module reads a module beside the script: a file, or all of a directory.
func (s *source) module(name string) (texts []string) {
	read := func(file string) bool {
		text, err := os.ReadFile(file) //nolint:gosec // G304: beside the user's own script
		if err != nil || len(text) > maxScript {
			return false
		}

		if beside, err := filepath.Rel(s.dir, file); err == nil {
			sum := sha256.Sum256(text)
			s.hashes[filepath.ToSlash(beside)] = hex.EncodeToString(sum[:])
		}

		texts = append(texts, string(text))

		return true
	}

	if read(filepath.Join(s.dir, name+".py")) {
		s.files = append(s.files, name+".py")

		return texts
	}

	_ = filepath.WalkDir(filepath.Join(s.dir, name), func(file string, entry os.DirEntry, err error) error {
		switch {
		case err != nil, len(texts) >= maxModules:
			return filepath.SkipAll
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "__pycache__"):
			return filepath.SkipDir
		case filepath.Ext(file) == ".py":
			read(file)
		}

		return nil
	}) // what cannot be read has no flags to find

	if len(texts) > 0 {
		s.files = append(s.files, name)
	}

	return texts
}

// local are the names of modules and directories beside and above the script:
// no package of the world has to bring them.
func (s *source) local() []string {
	out := s.modules()

	if s.dir == "" {
		return out
	}

	for _, dir := range []string{s.dir, filepath.Dir(s.dir)} {
		entries, _ := os.ReadDir(dir) // what cannot be read is not there for Python

		for _, e := range entries {
			if e.IsDir() || filepath.Ext(e.Name()) == ".py" {
				out = append(out, strings.TrimSuffix(e.Name(), ".py"))
			}
		}
	}

	return append(out, filepath.Base(s.dir))
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
		return exitf(ExitUsage, "there is no script %q, neither here nor in image %q; type `%s` to see what is there",
			r.script, r.looksIn, script.ShellCommand("docker", "run", "--rm", "--entrypoint", "ls", r.looksIn, "-l", filepath.Dir(r.script)))
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
