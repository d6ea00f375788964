package script

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Recipe is what a Dockerfile is made of.
type Recipe struct {
	From          string   // the base image
	Image         string   // the name of what it builds
	Script        string   // file name
	Files         []string // beside the script that it needs: modules and packages
	HasFile       bool     // requirements.txt is there
	Packages      []string // guessed from imports, when it is not
	Unknown       []string // modules that it imports, of packages that are not known
	Own           []string // lines that a person wrote into an earlier one
	User          string   // of the base image when that is the user's own; empty = a new one without rights
	AddsOnly      bool     // the base image has the libraries: only the script is added
	DataMentioned bool     // the script reads files beside it
}

// DockerfileMark begins every Dockerfile that Berth wrote.
const DockerfileMark = "# Written by `berth init`"

// compile byte-compiles once here: a trial's root file system is read-only, and
// each would compile again, which takes seconds. "unchecked-hash" keeps the byte
// code valid whatever time stamps a layer gives the files. A file that no longer
// compiles is of a library that nobody imports.
const compile = "python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash"

// Dockerfile writes the recipe.
func (r Recipe) Dockerfile() string {
	var b strings.Builder

	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("%s. Build it, and again after every change of the script:", DockerfileMark)
	line("#   docker build -t %s .", r.Image)
	line("FROM %s", r.From)

	if r.AddsOnly {
		line("USER root")
	}

	line("WORKDIR /app")

	if !r.AddsOnly {
		r.install(line)
	}

	for _, file := range append([]string{r.Script}, r.Files...) {
		target := "/app/"
		if path.Ext(file) != ".py" {
			target += file + "/"
		}

		line("COPY %s", list(file, target))
	}

	line("# Data that the script reads must be in the image, too, such as: COPY data/ /app/data/")
	for _, own := range r.Own {
		line("%s", own)
	}

	line("# Trials have no rights: everybody must be able to read the files.")
	line("RUN chmod -R a+rX /app && (%s /app || true)", compile)

	switch name, _, _ := strings.Cut(r.User, ":"); {
	case !r.AddsOnly, name == "", name == "root", name == "0":
		line("USER 65532:65532")
	default:
		line("USER %s", r.User)
	}

	line("ENTRYPOINT []")

	return b.String()
}

// CopyLine is the instruction that puts a script where a sweep file of Berth's has it.
func CopyLine(name string) string {
	if strings.ContainsAny(name, " \t\"'\\[$") {
		return "COPY " + list(name, "/app/")
	}

	return "COPY " + name + " /app/"
}

// list writes an instruction's arguments as JSON, which takes any name.
func list(args ...string) string {
	text, err := json.Marshal(args)
	if err != nil {
		return strings.Join(args, " ")
	}

	return strings.ReplaceAll(string(text), `","`, `", "`)
}

// written matches the lines that Berth writes.
var written = regexp.MustCompile("^(# Written by `berth init`|#   docker build -t |FROM |WORKDIR /app$|USER (root|65532:65532)$|ENTRYPOINT \\[\\]$|COPY (\\[?)\"[^\"]*\",? \"/app/[^\"]*\"\\]?$|COPY requirements.txt /app/$|" +
	"# (Bases whose Python belongs|Data that the script reads must be|Trials have no rights: everybody|guess: packages by the script's|`berth init --force` again|not known: )|" +
	"ENV PIP_BREAK_SYSTEM_PACKAGES=1$|RUN (chmod -R a\\+rX /app && \\(|pip install --no-cache-dir --no-compile |)python3 -m compileall |RUN pip install --no-cache-dir --no-compile [^\\\\]*$)")

// OwnLines are those of a Dockerfile of Berth's that a person added.
func OwnLines(dockerfile string, r Recipe) []string {
	var own []string

	for text := range strings.Lines(dockerfile) {
		text = strings.TrimRight(text, "\r\n")
		if text != "" && !written.MatchString(text) && text != "USER "+r.User {
			own = append(own, text)
		}
	}

	return own
}

// install are the libraries, in layers that a change of the script leaves alone.
func (r Recipe) install(line func(string, ...any)) {
	if r.HasFile || len(r.Packages) > 0 {
		line("# Bases whose Python belongs to a distribution refuse packages without this.")
		line("ENV PIP_BREAK_SYSTEM_PACKAGES=1")
	}

	if len(r.Unknown) > 0 && !r.HasFile {
		line("# not known: the packages of %s. Write them into requirements.txt.", strings.Join(r.Unknown, ", "))
	}

	stdlib := `$(python3 -c 'import sysconfig as s; print(s.get_path("stdlib"), s.get_path("purelib"))')`

	switch {
	case r.HasFile:
		line("COPY requirements.txt /app/")
		line("RUN pip install --no-cache-dir --no-compile -r requirements.txt && (%s %s || true)", compile, stdlib)
	case len(r.Packages) > 0:
		line("# guess: packages by the script's imports. Write them with their versions into requirements.txt, and run")
		line("# `berth init --force` again. On machines with GPUs, TensorFlow is \"tensorflow[and-cuda]\".")
		line("RUN pip install --no-cache-dir --no-compile %s && (%s %s || true)", strings.Join(r.Packages, " "), compile, stdlib)
	default:
		line("RUN %s %s || true", compile, stdlib)
	}
}
