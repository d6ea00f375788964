// Package config fills a command's flags from where people put settings: a flag
// wins over the environment, which wins over the configuration file.
package config

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/berthml/berth"
)

// FileVariable names the configuration file, a YAML map from flag names to values.
const FileVariable = "BERTH_CONFIG"

// Variable is the environment variable of a flag: --postgres-url is
// BERTH_POSTGRES_URL.
func Variable(flag string) string {
	return "BERTH_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Apply sets every flag that was not given from the environment, else from the
// file. Errors name the variable or the key, and what it must be.
func Apply(flags *pflag.FlagSet, getenv func(string) string) error {
	file, err := read(getenv(FileVariable))
	if err != nil {
		return err
	}

	var first error

	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || first != nil {
			return
		}

		if value := getenv(Variable(f.Name)); value != "" {
			first = set(flags, f.Name, value, "environment variable "+Variable(f.Name))
		} else if value, ok := file[f.Name]; ok {
			first = set(flags, f.Name, fmt.Sprint(value), "key "+f.Name+" of "+getenv(FileVariable))
		}
	})

	return first
}

func set(flags *pflag.FlagSet, name, value, source string) error {
	if err := flags.Set(name, value); err != nil {
		return berth.Errorf(berth.KindInvalid, "%s: %w", source, err)
	}

	return nil
}

func read(path string) (map[string]any, error) {
	if path == "" {
		return map[string]any{}, nil
	}

	data, err := os.ReadFile(path) //nolint:gosec // G304: the user names it
	if err != nil {
		return nil, berth.Errorf(berth.KindInvalid, "reading configuration file: %w", err)
	}

	values := make(map[string]any)
	if err := yaml.Unmarshal(data, &values); err != nil {
		return nil, berth.Errorf(berth.KindInvalid, "reading configuration file %q: %w", path, err)
	}

	return values, nil
}
