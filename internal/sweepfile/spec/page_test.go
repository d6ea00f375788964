package spec_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/sweepfile/spec"
)

// property is a key of the schema.
type property struct {
	Ref        string              `json:"$ref"`
	Default    any                 `json:"default"`
	Enum       []string            `json:"enum"`
	Minimum    *float64            `json:"minimum"`
	Maximum    *float64            `json:"maximum"`
	AnyOf      []property          `json:"anyOf"` //nolint:tagliatelle // JSON Schema says so
	Items      *property           `json:"items"`
	Properties map[string]property `json:"properties"`
	Defs       map[string]property `json:"$defs"`
}

// The page of the sweep file tells every key, with its default, choices and bounds, and
// its example is accepted.
func TestSweepFilePage(t *testing.T) {
	t.Parallel()

	data, err := os.ReadFile("../../../docs/sweep-file.md")
	require.NoError(t, err)

	page := string(data)

	var schema property

	require.NoError(t, json.Unmarshal(spec.Schema, &schema))

	keys := 0

	var walk func(above string, of property)

	walk = func(above string, of property) {
		for name, p := range of.Properties {
			key := above + name
			below := p

			if p.Items != nil {
				below = *p.Items
			}

			if ref, found := strings.CutPrefix(below.Ref, "#/$defs/"); found && below.Properties == nil {
				below.Properties = schema.Defs[ref].Properties
			}

			if key == "stages.resources" { // as resources
				requireRow(t, page, key, p)

				continue
			}

			walk(key+".", below)

			if p.Items == nil && len(below.Properties) > 0 {
				continue // only keys inside a section have rows
			}

			keys++

			requireRow(t, page, key, p)
		}
	}
	walk("", schema)
	require.Greater(t, keys, 50)

	example, _, found := strings.Cut(page[strings.Index(page, "```yaml\n")+len("```yaml\n"):], "```")
	require.True(t, found)

	_, err = spec.Decode([]byte(example), "application/yaml")
	require.NoError(t, err)
}

// requireRow holds the row of a key against the schema.
func requireRow(t *testing.T, page, key string, p property) {
	t.Helper()

	row := regexp.MustCompile("(?m)^.*`" + regexp.QuoteMeta(key) + "`.*$").FindString(page)
	require.NotEmpty(t, row, "%s is not told", key)

	for _, choice := range p.Enum {
		require.Contains(t, row, "`"+choice+"`", key)
	}

	if p.Default != nil && !strings.HasPrefix(key, "parameters.") {
		require.Regexp(t, `\| `+regexp.QuoteMeta(fmt.Sprint(p.Default))+` \|`, row, key)
	}

	for _, of := range append(p.AnyOf, p) {
		for _, bound := range []*float64{of.Minimum, of.Maximum} {
			if bound == nil || key == "search.seed" { // any whole number that JSON can hold
				continue
			}

			text := fmt.Sprint(*bound)
			if *bound >= 10_000 {
				text = ""
				rest := int(*bound)

				for ; rest >= 1000; rest /= 1000 {
					text = fmt.Sprintf(",%03d", rest%1000) + text
				}

				text = strconv.Itoa(rest) + text
			}

			require.Contains(t, row, text, key)
		}
	}
}
