package script

import (
	"encoding/json"
	"path"
	"strings"
)

// stage is what a Dockerfile has made of an image so far.
type stage struct {
	workdir string // empty = the base image's, which is not known
	placed  string // where the script is; empty = nowhere, or not known
	copied  bool   // it is somewhere
}

// Placed says where an image that is built by a Dockerfile has the file of a name that lies
// beside it. Bases are the working directories of images. A file that is copied to a place
// that cannot be told, as that depends on a variable or on the base image, has no path.
func Placed(dockerfile, name string, bases map[string]string) (file string, copied bool) {
	var (
		now   stage
		alias string
	)

	stages := make(map[string]stage) // by their names

	for _, text := range instructions(dockerfile) {
		words := strings.Fields(text)
		rest := strings.TrimSpace(text[len(words[0]):])

		switch strings.ToUpper(words[0]) {
		case "FROM":
			now, alias = begin(words[1:], stages, bases)
		case "WORKDIR":
			now.workdir = now.at(strings.Trim(rest, `"'`))
		case "COPY", "ADD":
			now = now.copies(rest, name, stages)
		}

		stages[alias] = now
	}

	return now.placed, now.copied
}

// instructions are a Dockerfile's, each in one line.
func instructions(dockerfile string) (out []string) {
	var text strings.Builder

	for line := range strings.Lines(dockerfile) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}

		part, more := strings.CutSuffix(line, "\\")
		text.WriteString(part + " ")

		if !more {
			out = append(out, strings.TrimSpace(text.String()))
			text.Reset()
		}
	}

	return out
}

// begin is a stage as FROM makes it, with its name.
func begin(words []string, stages map[string]stage, bases map[string]string) (now stage, alias string) {
	for len(words) > 0 && strings.HasPrefix(words[0], "--") {
		words = words[1:]
	}

	if len(words) == 0 {
		return now, ""
	}

	now, known := stages[strings.ToLower(words[0])]
	if !known {
		now.workdir = bases[words[0]]
	}

	const named = 3 // FROM image AS name
	if len(words) == named {
		alias = strings.ToLower(words[2])
	}

	return now, alias
}

// at is a path as the stage has it; empty = it is not known.
func (s stage) at(to string) string {
	switch {
	case strings.Contains(to, "$"):
		return ""
	case path.IsAbs(to):
		return path.Clean(to)
	case s.workdir == "":
		return ""
	}

	return path.Join(s.workdir, to)
}

// copies is the stage after COPY or ADD.
func (s stage) copies(rest, name string, stages map[string]stage) stage {
	words := strings.Fields(rest)
	of := ""

	for len(words) > 0 && strings.HasPrefix(words[0], "--") {
		if from, ok := strings.CutPrefix(words[0], "--from="); ok {
			of = strings.ToLower(from)
		}

		rest = strings.TrimSpace(strings.TrimPrefix(rest, words[0]))
		words = words[1:]
	}

	if list := []string(nil); json.Unmarshal([]byte(rest), &list) == nil {
		words = list
	}

	if len(words) <= 1 {
		return s
	}

	sources, to := words[:len(words)-1], words[len(words)-1]
	for _, source := range sources {
		below, found := inContext(source, name)
		if of != "" {
			below, found = inStage(source, stages[of])
		}

		if !found {
			continue
		}

		s.copied, s.placed = true, s.at(to)
		if whole := below == name && len(sources) == 1 && path.Ext(to) == path.Ext(name); !whole && s.placed != "" { // not to a file of that name
			s.placed = path.Join(s.placed, below)
		}
	}

	return s
}

// inContext reports whether a source has a file beside the Dockerfile, and at which path below it.
func inContext(source, name string) (below string, found bool) {
	source = strings.TrimPrefix(path.Clean(source), "/")
	matches, err := path.Match(source, name)

	return name, source == "" || source == "." || err == nil && matches
}

// inStage is inContext for a source in another stage.
func inStage(source string, other stage) (below string, found bool) {
	if other.placed == "" {
		return "", false
	}

	source = path.Join("/", source)
	if source == other.placed {
		return path.Base(source), true
	}

	return strings.CutPrefix(other.placed, strings.TrimSuffix(source, "/")+"/")
}
