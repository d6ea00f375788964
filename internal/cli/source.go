package cli

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/berthml/berth/internal/sweepfile/script"
)

// source is the script and the files beside it.
type source struct {
	path       string   // without links, as Python looks for modules there
	dir        string   // of path
	dockerfile string   // beside the script
	name       string   // of the sweep: after the script and its directory
	image      string   // that the Dockerfile makes
	build      string   // the command that makes it, from where the user is
	text       string   // of the script and the modules beside it that it needs
	files      []string // the script, and those modules: files and packages, by name
}

// readSource reads a script and the modules beside it.
func readSource(name string) (*source, error) {
	path, err := filepath.EvalSymlinks(name)
	if info, failed := os.Stat(name); err != nil || failed != nil || info.IsDir() {
		return nil, exitf(ExitUsage, "there is no script %q%s. Type `berth init PATH/train.py`", name, whichOfHere(filepath.Dir(name), "*.py"))
	}

	if filepath.Ext(name) != ".py" {
		return nil, exitf(ExitUsage, "%s is no Python script (.py); for another program copy a sweep file of examples/, and check it with `berth sweep validate -f sweep.yaml`", name)
	}

	text, err := os.ReadFile(path)
	whole, failed := filepath.Abs(path)

	if err := errors.Join(err, failed); err != nil {
		return nil, exitf(ExitUsage, "reading the script: %w", err)
	}

	// Two projects may both have src/train.py: the second build would take the first's name.
	image := fmt.Sprintf("%s-%.2x:1", slug(whole), sha256.Sum256([]byte(whole)))
	s := &source{path: path, dir: filepath.Dir(path), name: slug(whole), image: image, files: []string{filepath.Base(path)}}
	s.dockerfile, s.build = filepath.Join(s.dir, "Dockerfile"), script.ShellCommand("docker", "build", "-t", s.image, s.dir)
	s.addText(string(text))
	slices.Sort(s.files[1:])

	return s, nil
}

var (
	// importLine matches a file's imports, also in forms that only local modules use.
	importLine = regexp.MustCompile(`(?m)^\s*(?:from\s+\.*\s*([A-Za-z_]\w*)|from\s+\.+\s+import\s+([\w, \t]+)|import\s+([A-Za-z_][\w., \t]*))`)
	moduleName = regexp.MustCompile(`(?:^|,)\s*(\w+)`)
)

// addText adds a text, and the modules beside the script that it imports.
func (s *source) addText(text string) {
	s.text += text + "\n"

	for _, match := range importLine.FindAllStringSubmatch(text, -1) {
		for _, name := range moduleName.FindAllStringSubmatch(match[1]+match[2]+match[3], -1) {
			s.addModule(name[1])
		}
	}
}

// addModule adds a module beside the script, if it is there: a file, or all of a directory.
func (s *source) addModule(name string) {
	for _, entry := range []string{name + ".py", name} {
		if slices.Contains(s.files, entry) {
			return
		}

		var texts []string

		_ = filepath.WalkDir(filepath.Join(s.dir, entry), func(file string, _ os.DirEntry, err error) error { //nolint:gosec // G703: beside the user's own script
			if err != nil || filepath.Ext(file) != ".py" {
				return nil //nolint:nilerr // an unreadable file has no flags to find
			}

			if text, err := os.ReadFile(file); err == nil { //nolint:gosec // G304, G122: beside the user's own script
				texts = append(texts, string(text))
			}

			return nil
		})

		if len(texts) > 0 {
			s.files = append(s.files, entry)
			s.addText(strings.Join(texts, "\n"))

			return
		}
	}
}

var noSlug = regexp.MustCompile(`[^a-z0-9]+`)

// slug is a name for a script's sweep and image: its directory's and its own.
func slug(path string) string {
	const longest = 60

	words := strings.ToLower(filepath.Base(filepath.Dir(path)) + "-" + strings.TrimSuffix(filepath.Base(path), ".py"))
	name := strings.Trim(noSlug.ReplaceAllString(words, "-"), "-")

	return cmp.Or(strings.Trim(name[:min(len(name), longest)], "-"), "sweep")
}
