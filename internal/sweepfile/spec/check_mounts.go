package spec

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/argv"
)

var (
	envName   = regexp.MustCompile(`^[A-Z_][A-Z0-9_]{0,63}$`)
	mountName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
)

const datasetHint = "name a dataset that an administrator has mapped, such as {name: flowers, target: /data/flowers}"

// deniedEnv are prefixes of variables a job may not set, with the reason.
var deniedEnv = []struct{ prefix, reason string }{
	{"LD_", "it loads foreign code into every program of the container"},
	{"NVIDIA_", "Berth chooses the device; write resources.device"},
	{"CUDA_MPS_", "Berth sets the limits of the shared device; write resources.gpu_memory"},
	{"CUDA_VISIBLE_DEVICES", "Berth chooses the device; write resources.device"},
	{"TRIAL_", "Berth sets these for the job to read"},
}

// fixedEnv are variables with the only value under which trials can share a
// device; any other would break packing.
var fixedEnv = map[string]string{
	"TF_FORCE_GPU_ALLOW_GROWTH":     "true",
	"XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}

func (c *checker) checkEnvironment() {
	env := c.spec.EnvironmentVariables
	if len(env) > maxEntries {
		c.add("/environment_variables", codeTooMany, "there are %d variables; at most %d are passed", len(env), maxEntries)

		return
	}

	known, parameters := c.reader.clean("/parameters"), c.byName()

	for _, name := range slices.Sorted(maps.Keys(env)) {
		at, value := "/environment_variables"+pointer(name), env[name]

		if !envName.MatchString(name) {
			c.add(at, codeEnvName, "a variable's name has 1 to 64 of A-Z 0-9 _ and begins with no digit")
		}

		for _, denied := range deniedEnv {
			if strings.HasPrefix(name, denied.prefix) {
				c.add(at, codeEnvDenied, "%s cannot be set: %s", name, denied.reason)
			}
		}

		if want, ok := fixedEnv[name]; ok && value != want {
			c.add(at, codeEnvDenied, "%s must be %q or left out: with %q one trial would take the memory of all on its device",
				name, want, shorten(value))
		}

		if size := argv.Longest([]string{value}, parameters) - 1; size > maxValueBytes { // without the end of an argument
			c.add(at, codeEnvDenied, tooLong, berth.BytesText(int64(size)), berth.BytesText(maxValueBytes))
		}

		parts, broken := argv.Parse(value)
		if broken != "" {
			c.add(at, codeTemplate, noPlaceholder, shorten(broken))
		}

		for _, part := range parts {
			if _, declared := parameters[part.Name]; known && part.Name != "" && !declared {
				c.add(at, codeTemplateParam, noParameter, part.Name, c.suggestName(part.Name))
			}
		}
	}
}

// IsMountName reports whether a sweep file may name a data set or a secret so: at most
// 128 letters, digits and ._-, the first a letter or digit.
func IsMountName(name string) bool { return mountName.MatchString(name) }

func (c *checker) checkMounts() {
	if n := len(c.spec.Datasets) + len(c.spec.Secrets); n > maxEntries {
		c.add("/datasets", codeTooMany, "there are %d mounts; at most %d are made", n, maxEntries)

		return
	}

	used := map[string]string{}

	for i, d := range c.spec.Datasets {
		at := "/datasets/" + strconv.Itoa(i)

		switch {
		case path.IsAbs(d.Name) || strings.HasSuffix(d.Name, ".sock"):
			c.add(at+"/name", codeMountDenied, "%q is a path of the host, which cannot be mounted; %s", shorten(d.Name), datasetHint)
		case !IsMountName(d.Name):
			c.add(at+"/name", codeDataset, "%q is no name of a dataset; %s", shorten(d.Name), datasetHint)
		case d.Version != "" && !datasetVersion.MatchString(d.Version):
			c.add(at+"/version", codeDataset, "%q is no version: 16 of 0-9 and a-f, as a host and an attempt show it", shorten(d.Version))
		}

		c.checkTarget(at+"/target", d.Target, used)
	}

	for i, s := range c.spec.Secrets {
		at := "/secrets/" + strconv.Itoa(i)
		if !IsMountName(s.Name) {
			c.add(at+"/name", codeSecret, "%q is no name of a secret; name one that an administrator has stored", shorten(s.Name))
		}

		if !c.inTheWay(at+"/file", s.File, used) {
			c.checkTarget(at+"/file", s.File, used)
		}
	}
}

// datasetVersion is what a worker calls the contents of a data set.
var datasetVersion = regexp.MustCompile(`^[0-9a-f]{16}$`)

// reserved are directories of the container that a mount may not hide.
var reserved = []string{
	"/proc", "/sys", "/dev", "/trial", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/run", "/var/run",
}

// inTheWay refuses a file where another mount or the working directory is: one below a
// data set would have to be made there, and nothing can be below a file.
func (c *checker) inTheWay(at, file string, used map[string]string) bool {
	for _, other := range slices.Sorted(maps.Keys(used)) {
		if strings.HasPrefix(file, other+"/") || strings.HasPrefix(other, file+"/") {
			c.add(at, codeMountDup, "%s and the target of %s, %s, lie in each other; give each mount its own place", shorten(file), used[other], shorten(other))

			return true
		}
	}

	if workdir := path.Clean(c.spec.Workdir); workdir == file || strings.HasPrefix(workdir, file+"/") {
		c.add(at, codeMountDup, "%s is the working directory, or above it; mount the secret at a file such as /run/secrets/hub", shorten(file))

		return true
	}

	return false
}

// checkTarget checks a path in the container; used maps the targets so far to
// their pointers.
func (c *checker) checkTarget(at, target string, used map[string]string) {
	switch {
	case strings.HasSuffix(target, "docker.sock"), strings.HasSuffix(target, "containerd.sock"):
		c.add(at, codeMountDenied, "the container engine is never mounted: its socket is root on the host")

		return
	case !path.IsAbs(target) || path.Clean(target) != target || target == "/" || len(target) > 1024:
		c.add(at, codeMountTarget, "write an absolute path in the container without .. or a slash at the end, such as /data/flowers")

		return
	}

	for _, dir := range reserved {
		if (target == dir || strings.HasPrefix(target, dir+"/")) && !strings.HasPrefix(target, "/run/secrets/") {
			c.add(at, codeMountTarget, "%s belongs to the system or to Berth; mount under /data or /run/secrets", dir)

			return
		}
	}

	if first, ok := used[target]; ok {
		c.add(at, codeMountDup, "%s is already the target of %s; give each mount its own", shorten(target), first)

		return
	}

	used[target] = at
}
