// Package config fills a command's flags from where people put settings: a flag
// wins over the environment, which wins over the configuration file.
package config

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// FileVariable names the configuration file, a YAML map from flag names to values.
const FileVariable = "BERTH_CONFIG"

// Variable is the environment variable of a flag: --postgres-url is
// BERTH_POSTGRES_URL.
func Variable(flag string) string {
	return "BERTH_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Apply sets every flag that was not given from the environment, else from the
// file. One file may serve several commands: others are the flags that only those
// have. A key that is no flag of any is refused. Errors name the variable or the
// key, and what it must be.
func Apply(flags *pflag.FlagSet, getenv func(string) string, others ...string) error {
	file, err := read(getenv(FileVariable))
	if err != nil {
		return err
	}

	first := checkKeys(file, getenv(FileVariable), flags, others)

	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || first != nil {
			return
		}

		if value := getenv(Variable(f.Name)); value != "" {
			first = set(f, value, "environment variable "+Variable(f.Name))
		} else if node, ok := file[f.Name]; ok && node.Tag != "!!null" {
			first = set(f, text(f, node), "key "+f.Name+" of "+getenv(FileVariable))
		}
	})

	return first
}

// checkKeys refuses keys that set nothing: a person who writes one believes that it does.
func checkKeys(file map[string]yaml.Node, path string, flags *pflag.FlagSet, others []string) error {
	known := slices.Clone(others)
	flags.VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })

	for _, key := range slices.Sorted(maps.Keys(file)) {
		if slices.Contains(known, key) {
			continue
		}

		hint := "keys are flags of berth's commands, without --"
		if near := spec.Nearest(key, known); near != "" {
			hint = "did you mean " + near + "?"
		}

		return berth.Errorf(berth.KindInvalid, "key %s of %s is no flag of any command; %s", key, path, hint)
	}

	return nil
}

// sourceAnnotation is where a flag's value comes from that was not on the command line.
const sourceAnnotation = "berth_source"

// set gives a flag a value. One that takes a list, by commas or by being given again as
// --dataset is, gets all items at once.
func set(f *pflag.Flag, value, source string) error {
	var err error

	if several, ok := f.Value.(pflag.SliceValue); ok && (repeated(f) || commas(f)) {
		err = several.Replace(items(f, value))
	} else {
		err = f.Value.Set(value)
	}

	if err != nil {
		return berth.Errorf(berth.KindInvalid, "%s: %w", source, err)
	}

	f.Changed = true

	if f.Annotations == nil {
		f.Annotations = make(map[string][]string)
	}

	f.Annotations[sourceAnnotation] = []string{source}

	return nil
}

// separated is what stands between items in lists with commas.
var separated = regexp.MustCompile(`\s*[,\n]\s*`)

var lines = regexp.MustCompile(`\s*\n\s*`)

// repeated is a flag that is given again for each item; commas one whose items have
// commas between.
func repeated(f *pflag.Flag) bool { return f.Value.Type() == "stringArray" }
func commas(f *pflag.Flag) bool   { return f.Value.Type() == "stringSlice" }

// items are those of a variable for a flag that takes a list: one a line, or with commas
// between. A flag that may be repeated keeps the commas in a text of several lines.
func items(f *pflag.Flag, value string) []string {
	text := strings.TrimSpace(value)
	if repeated(f) && strings.Contains(value, "\n") {
		return strings.FieldsFunc(lines.ReplaceAllString(text, "\n"), func(r rune) bool { return r == '\n' })
	}

	return strings.FieldsFunc(separated.ReplaceAllString(text, ","), func(r rune) bool { return r == ',' })
}

// Typed reports whether a flag was given on the command line itself.
func Typed(flags *pflag.FlagSet, name string) bool {
	f := flags.Lookup(name)

	return f != nil && f.Changed && f.Annotations[sourceAnnotation] == nil
}

// text is a value of the file as a variable would have it: a list is an item a line, or has
// commas between for a flag that takes no list.
func text(f *pflag.Flag, node yaml.Node) string {
	if node.Kind != yaml.SequenceNode {
		return node.Value
	}

	end := ","
	if repeated(f) || commas(f) {
		end = "\n"
	}

	var whole strings.Builder
	for _, item := range node.Content {
		whole.WriteString(item.Value + end)
	}

	return strings.TrimSuffix(whole.String(), ",")
}

func read(path string) (map[string]yaml.Node, error) {
	if path == "" {
		return map[string]yaml.Node{}, nil
	}

	data, err := os.ReadFile(path) //nolint:gosec // G304: the user names it
	if err != nil {
		return nil, berth.Errorf(berth.KindInvalid, "reading configuration file: %w", err)
	}

	values := make(map[string]yaml.Node)
	if err := yaml.Unmarshal(data, &values); err != nil {
		return nil, berth.Errorf(berth.KindInvalid, "reading configuration file %q: %w", path, err)
	}

	return values, nil
}
