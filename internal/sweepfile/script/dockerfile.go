package script

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// Recipe is the input of a Dockerfile.
type Recipe struct {
	From         string   // the base image
	Image        string   // the name of the built image
	Script       string   // file name
	Files        []string // beside the script that it needs: modules and packages
	Requirements bool     // requirements.txt exists
	Packages     []string // guessed, when it is not
	Unknown      []string // modules of packages that are not known
	User         string   // of the base image; empty = root
}

// Dockerfile writes the recipe.
func (r Recipe) Dockerfile() string {
	var b strings.Builder

	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("# Written by `berth init`. Build it, and again after every change of the script:")
	line("#   docker build -t %s .", r.Image)
	line("FROM %s\nUSER root\nWORKDIR /app", r.From)

	const install = "RUN PIP_BREAK_SYSTEM_PACKAGES=1 pip install --no-cache-dir "

	if len(r.Unknown) > 0 && !r.Requirements {
		line("# not known: the packages of %s. Write them into requirements.txt, delete this file, and type `berth init` again.", comment(strings.Join(r.Unknown, ", ")))
	}

	switch {
	case r.Requirements:
		line("COPY requirements.txt /app/\n%s-r requirements.txt", install)
	case len(r.Packages) > 0:
		line("# guess: packages by the script's imports. On machines with GPUs, TensorFlow is \"tensorflow[and-cuda]\".\n%s%s", install, strings.Join(r.Packages, " "))
	}

	for _, file := range append([]string{r.Script}, r.Files...) {
		target := "/app/"
		if path.Ext(file) != ".py" {
			target += file + "/"
		}

		text, err := json.Marshal([]string{file, target}) // which takes any name
		if err == nil {
			line("COPY %s", strings.ReplaceAll(string(text), `","`, `", "`))
		}
	}

	line("# Data that the script reads must be in the image, too, such as: COPY data/ /app/data/")
	line("# Trials have no rights: everybody must be able to read the files.\nRUN chmod -R a+rX /app")

	user := r.User
	if name, _, _ := strings.Cut(user, ":"); name == "" || name == "root" || name == "0" {
		user = "65532:65532"
	}

	line("USER %s", user)

	return b.String()
}
