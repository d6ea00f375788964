package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/berthml/berth/internal/sweepfile/script"
)

// source is the script and the files beside it.
type source struct {
	path         string   // absolute, without links
	dir          string   // of path
	all          string   // the script's text and that of the modules beside it that it needs
	files        []string // those modules: files and packages, by name
	requirements bool     // requirements.txt exists
}

const (
	maxScript  = 4 << 20
	maxModules = 200 // files that are read of the directory
)

// readSource reads a script and the modules beside it.
func readSource(name string) (*source, error) {
	info, err := os.Stat(name)

	switch {
	case err != nil, info.IsDir():
		return nil, noScript(name)
	case filepath.Ext(name) != ".py":
		return nil, exitf(ExitUsage, "%s is no Python script (.py); for another program copy a sweep file of examples/, and check it with `berth sweep validate -f sweep.yaml`", name)
	case info.Size() > maxScript:
		return nil, exitf(ExitUsage, "%s has %d bytes, which is no script that a person wrote", name, info.Size())
	}

	path, err := filepath.Abs(name)
	if err == nil {
		path, err = filepath.EvalSymlinks(path) // as Python does: it looks for modules there
	}

	if err != nil {
		return nil, exitf(ExitUsage, "finding the script: %w", err)
	}

	text, err := os.ReadFile(path)
	if err != nil {
		return nil, exitf(ExitUsage, "reading the script: %w", err)
	}

	s := &source{path: path, dir: filepath.Dir(path)}
	s.findModules(string(text))

	_, err = os.Stat(filepath.Join(s.dir, "requirements.txt"))
	s.requirements = err == nil

	return s, nil
}

// noScript names the existing scripts.
func noScript(name string) error {
	dir := name
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = filepath.Dir(name)
	}

	found, _ := filepath.Glob(filepath.Join(dir, "*.py")) // the pattern is well formed

	const few = 5

	there := ""
	if len(found) > 0 {
		there = "; here are " + strings.Join(found[:min(len(found), few)], ", ")
	}

	return exitf(ExitUsage, "there is no script %q%s. Type `berth init PATH/train.py`", name, there)
}

// importLine matches a file's imports, also in forms that only local modules use.
var importLine = regexp.MustCompile(`(?m)^\s*(?:from\s+\.*\s*([A-Za-z_]\w*)|from\s+\.+\s+import\s+([\w, \t]+)|import\s+([A-Za-z_][\w., \t]*))`)

// findModules finds the modules beside the script that it needs, and theirs.
func (s *source) findModules(text string) {
	texts := []string{text}
	seen := map[string]bool{strings.TrimSuffix(filepath.Base(s.path), ".py"): true}

	for i := 0; i < len(texts) && len(texts) < maxModules; i++ {
		for _, match := range importLine.FindAllStringSubmatch(texts[i], -1) {
			for name := range strings.SplitSeq(match[1]+match[2]+match[3], ",") {
				name, _, _ = strings.Cut(strings.TrimSpace(name), " ")
				name, _, _ = strings.Cut(name, ".")

				if name != "" && !seen[name] {
					seen[name] = true
					texts = append(texts, s.readModule(name)...)
				}
			}
		}
	}

	slices.Sort(s.files)
	s.all = strings.Join(texts, "\n")
}

// readModule reads a module beside the script: a file, or all of a directory.
func (s *source) readModule(name string) (texts []string) {
	if text, err := os.ReadFile(filepath.Join(s.dir, name+".py")); err == nil { //nolint:gosec // G304: beside the user's own script
		s.files = append(s.files, name+".py")

		return []string{string(text)}
	}

	_ = filepath.WalkDir(filepath.Join(s.dir, name), func(file string, entry os.DirEntry, err error) error {
		switch {
		case err != nil, len(texts) >= maxModules:
			return filepath.SkipAll
		case filepath.Ext(file) == ".py" && !entry.IsDir():
			if text, err := os.ReadFile(file); err == nil { //nolint:gosec // G304, G122: beside the user's own script
				texts = append(texts, string(text))
			}
		}

		return nil
	}) // an unreadable file has no flags to find

	if len(texts) > 0 {
		s.files = append(s.files, name)
	}

	return texts
}

var noSlug = regexp.MustCompile(`[^a-z0-9]+`)

// slug names the sweep and its image after the script and its directory.
func (s *source) slug() string {
	stem := strings.TrimSuffix(filepath.Base(s.path), filepath.Ext(s.path))

	slug := strings.Trim(noSlug.ReplaceAllString(strings.ToLower(filepath.Base(s.dir)+"-"+stem), "-"), "-")
	if slug == "" || slug[0] >= '0' && slug[0] <= '9' {
		slug = strings.Trim("sweep-"+slug, "-")
	}

	const longest = 60

	return strings.Trim(slug[:min(len(slug), longest)], "-")
}

// buildCommand makes the image from where the user is.
func (r *initiation) buildCommand() string {
	return script.ShellCommand("docker", "build", "-t", r.ownImage(), r.where())
}

// where is the script's directory, as the user typed it where that is no link.
func (r *initiation) where() string {
	typed := filepath.Dir(r.script)
	if resolved, err := filepath.EvalSymlinks(typed); err == nil {
		if resolved, err = filepath.Abs(resolved); err == nil && resolved == r.source.dir {
			return typed
		}
	}

	return r.source.dir
}
