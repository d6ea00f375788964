package cli

import (
	"fmt"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/script"
)

const (
	// fewCompiled is below which share of files Python compiles enough at every
	// start to be noticed: a trial's root file system is read-only, so nothing is kept.
	fewCompiled = 0.9
	// largeImage takes minutes to pull and unpack.
	largeImage = 10 << 30
	// slowImport is longer than TensorFlow takes where all is in order (3 to 10 s).
	slowImport = 15
)

// judge turns what was found into what to do.
func (c *imageCheck) judge() {
	if len(c.Volumes) > 0 {
		c.add(levelMend, "it declares volumes ("+strings.Join(c.Volumes, ", ")+"): a trial finds each empty, in memory that counts against its limit",
			"leave VOLUME out of the Dockerfile, or keep the data at another path")
	}

	if c.SizeBytes > largeImage {
		c.add(levelNote, "it has "+berth.BytesText(c.SizeBytes)+", which every machine pulls once; pull it before the first sweep", "docker pull %s", c.Image)
	}

	if len(c.Entrypoint) > 0 {
		c.add(levelNote, "Berth does not run its ENTRYPOINT ("+strings.Join(c.Entrypoint, " ")+") unless the sweep file says so",
			"write the whole program into the sweep file, such as command: [python3, /app/train.py]; or entrypoint: true, and its arguments as command")
	}

	if c.StoppedTooEarly && c.Runnable {
		c.add(levelMend, "the look was stopped by --timeout; what is missing above was not reached", "berth image check %s --timeout 15m", c.Image)
	}

	if c.Inside != nil {
		c.judgeFiles(c.Inside)
		c.judgeImports(c.Inside)
	}

	if len(c.Findings) == 0 {
		c.add(levelFine, "nothing to mend", "")
	}
}

func (c *imageCheck) judgeFiles(in *script.ImageReport) {
	if p := in.Packages; p != nil && p.Unreadable > 0 {
		c.add(levelMend, fmt.Sprintf("%s of its packages cannot be read by uid %d, as which trials run, such as %s", plural(p.Unreadable, "file", "files"), in.UID, p.FirstUnreadable),
			"in the Dockerfile: RUN chmod -R a+rX %s", strings.Join(p.Dirs, " "))
	}

	if f := in.Files; f != nil && f.Unreadable > 0 {
		c.add(levelMend, fmt.Sprintf("%s of %s cannot be read by uid %d, as which trials run, such as %s", plural(f.Unreadable, "file", "files"), f.Dir, in.UID, f.FirstUnreadable),
			"in the Dockerfile, after COPY: RUN chmod -R a+rX %s", f.Dir)
	}

	for _, b := range []*script.ByteCode{in.Packages, in.Standard} {
		if b == nil || b.Files == 0 || float64(b.Compiled) >= fewCompiled*float64(b.Files) {
			continue
		}

		c.add(levelMend, fmt.Sprintf("only %s in %s are byte-compiled: every trial compiles the rest again, which takes seconds, as its root file system is read-only", share(b), strings.Join(b.Dirs, " ")),
			"in the Dockerfile: RUN python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash %s || true", strings.Join(b.Dirs, " "))
	}

	for _, f := range in.Frameworks {
		if f.Module == "tensorflow" && len(in.GPULibraries) == 0 {
			c.add(levelNote, f.Name+" finds no GPU libraries here, so trials train on cores; that is right on machines without GPUs", `for GPUs: pip install "tensorflow[and-cuda]"`)
		}

		if f.Module == "torch" && len(in.GPULibraries) == 0 {
			c.add(levelNote, "torch is here without GPU libraries, so trials train on cores; that is right on machines without GPUs", "for GPUs: pip install torch, without the index of CPU builds")
		}
	}
}

func (c *imageCheck) judgeImports(in *script.ImageReport) {
	for _, i := range in.Imports {
		switch {
		case i.Error != "":
			c.add(levelMend, "import "+i.Module+" fails as a trial would run it: "+oneLine(i.Error),
				"docker run --rm --user %d:%d --network none %s python3 -c \"import %s\"", in.UID, in.GID, c.Image, i.Module)
		case i.SecondSeconds > slowImport:
			c.add(levelNote, fmt.Sprintf("import %s takes %.0f s of every trial; what takes long is above", i.Module, i.SecondSeconds),
				"import only what the script uses; with many short trials this is most of their time")
		}
	}
}
