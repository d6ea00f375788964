package script

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/berthml/berth"
)

var (
	// helpLine is a flag in a text of help: "  -x, --name VALUE  what it does".
	helpLine = regexp.MustCompile(`^\s{1,12}(?:-\w(?:[ =][^\s,]+)?,\s*)?(--?[A-Za-z][\w.-]*)(?:[ =](\{[^}]*\}|<[^>]*>|\[[^\]]*\]|[^\s-][^\s]*))?(?:\s{2,}(.*))?$`)
	// helpDefault is how texts of help say a default.
	helpDefault = regexp.MustCompile(`(?i)[\[(]?default(?:s to|:|=| is)\s*['"]?([^\s'"\])};,]+)`)
)

// FlagsOfHelp reads flags out of what a script prints for --help. It finds less
// than the driver: a type only where a default shows it.
func FlagsOfHelp(text string) []Flag {
	var flags []Flag

	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \r\n")

		match := helpLine.FindStringSubmatch(line)
		if match == nil {
			if n := len(flags); n > 0 && strings.HasPrefix(line, "        ") { // the help goes on
				flags[n-1].Help = strings.TrimSpace(flags[n-1].Help + " " + strings.TrimSpace(line))
			}

			continue
		}

		name, value := match[1], match[2]
		if strings.HasPrefix(name, "--help") || name == "--version" {
			continue
		}

		f := Flag{Names: []string{name}, Dest: strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_"), Type: TypeString, Form: FormValue, Help: match[3]}

		switch {
		case value == "":
			f.Form, f.Type = FormTrue, TypeBool
		case strings.HasPrefix(value, "{"):
			for choice := range strings.SplitSeq(strings.Trim(value, "{}"), ",") {
				f.Choices = append(f.Choices, valueOf(choice))
			}
		}

		flags = append(flags, f)
	}

	for i := range flags {
		flags[i].defaultOfHelp()
	}

	return flags
}

// defaultOfHelp takes the default, and with it the type, from the help.
func (f *Flag) defaultOfHelp() {
	match := helpDefault.FindStringSubmatch(f.Help)
	if match == nil {
		return
	}

	text := strings.TrimRight(match[1], ".")
	if text == "None" || text == "null" {
		return
	}

	v := valueOf(text)

	switch v.Any().(type) {
	case int64:
		f.Type = TypeInt
	case float64:
		f.Type = TypeFloat
	case bool:
		f.Type = TypeBool
	}

	if f.Form == FormTrue && f.Type != TypeBool { // a help without the name of its value
		f.Form = FormValue
	}

	f.Default = &v
}

// valueOf reads a value as Python prints it.
func valueOf(text string) berth.Value {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return berth.IntValue(n)
	}

	if v, err := strconv.ParseFloat(text, 64); err == nil && strings.ContainsAny(text, "0123456789") {
		return berth.FloatValue(v)
	}

	switch text {
	case "True", "true":
		return berth.BoolValue(true)
	case "False", "false":
		return berth.BoolValue(false)
	}

	return berth.StringValue(text)
}
