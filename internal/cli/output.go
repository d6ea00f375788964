package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// The formats of -o.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatCSV   = "csv"
)

// table is rows for people, and for CSV.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// drop removes count columns, from the given one on.
func (t *table) drop(from, count int) {
	t.header = slices.Delete(t.header, from, from+count)
	for i, row := range t.rows {
		t.rows[i] = slices.Delete(row, from, from+count)
	}
}

// say writes for people; it ignores the error of a closed output.
func say(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, args...)
}

// print writes data in the wanted format; rows makes the table of it.
func (o *options) print(w io.Writer, data any, rows func() table) error {
	switch o.output {
	case formatJSON:
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)

		return encoder.Encode(data)
	case formatYAML:
		return printYAML(w, data)
	case formatCSV:
		return printCSV(w, rows())
	case formatTable, "":
		return printTable(w, rows())
	default:
		return exitf(ExitUsage, "--output must be table, json, yaml or csv, got %q", o.output)
	}
}

// show prints the answer to a call; rows makes the table of it.
func show[T any](o *options, cmd *cobra.Command, rows func(T) table) func(T, error) error {
	return func(data T, err error) error {
		if err != nil {
			return err
		}

		return o.print(cmd.OutOrStdout(), data, func() table { return rows(data) })
	}
}

// confirm says that a call without an answer was done.
func confirm(cmd *cobra.Command, format string, args ...any) func(*http.Response, error) error {
	return func(response *http.Response, err error) error {
		if _, err := answer[struct{}](response, err); err != nil {
			return err
		}

		say(cmd.ErrOrStderr(), format+"\n", args...)

		return nil
	}
}

// printYAML goes through JSON, which is YAML, so that both have the same names.
func printYAML(w io.Writer, data any) error {
	const indent = 2

	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}

	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}

	plain(&document)

	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(indent)

	if err := encoder.Encode(&document); err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}

	return encoder.Close()
}

// plain drops the brackets and quotes of JSON where YAML needs none.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, kid := range n.Content {
		plain(kid)
	}
}

func printTable(w io.Writer, t table) error {
	const gap = 2

	columns := tabwriter.NewWriter(w, 0, 0, gap, ' ', 0)
	if len(t.header) > 0 {
		say(columns, "%s\n", strings.ToUpper(strings.Join(t.header, "\t")))
	}

	for _, row := range t.rows {
		clean := make([]string, len(row))
		for i, cell := range row {
			clean[i] = oneLine(cell)
		}

		say(columns, "%s\n", strings.TrimRight(strings.Join(clean, "\t"), "\t"))
	}

	return columns.Flush()
}

// printTables writes the tables that have rows, each with an empty line behind it.
func printTables(w io.Writer, tables ...table) error {
	for _, t := range tables {
		if len(t.rows) == 0 {
			continue
		}

		if err := printTable(w, t); err != nil {
			return err
		}

		say(w, "\n")
	}

	return nil
}

// oneLine is a text without line ends and terminal controls.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}

		return ' '
	}, text)

	return strings.Join(strings.Fields(text), " ")
}

// printCSV keeps spreadsheets from taking a cell for a formula.
func printCSV(w io.Writer, t table) error {
	out := csv.NewWriter(w)

	for _, row := range append([][]string{t.header}, t.rows...) {
		safe := make([]string, len(row))

		for i, cell := range row {
			if cell == none {
				cell = ""
			}

			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) && !isNumber(cell) {
				cell = "'" + cell
			}

			safe[i] = cell
		}

		if err := out.Write(safe); err != nil {
			return fmt.Errorf("writing CSV: %w", err)
		}
	}

	out.Flush()

	return out.Error()
}
