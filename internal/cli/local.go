package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/berthml/berth"
)

// LocalDocker is this machine's Docker, for init and image check.
type LocalDocker interface {
	// Facts returns the facts of an image; a *berth.SpecError when it is
	// missing.
	Facts(ctx context.Context, image string) (berth.ImageFacts, error)
	// Look runs a container to its end.
	Look(ctx context.Context, look berth.Look) (berth.Looked, error)
	Close() error
}

const (
	// lookMemory is a look's memory limit: importing TensorFlow or PyTorch
	// takes 0.6 to 1.5 GiB.
	lookMemory = 4 << 30
	lookCPU    = 2000
)

// lookEnvironment is that of trials, as far as it matters to an import. Without a
// GPU to be seen no framework takes time to look for one.
var lookEnvironment = map[string]string{
	"HOME": "/tmp", "USER": "trial", "LOGNAME": "trial", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1",
	"TF_CPP_MIN_LOG_LEVEL": "3", "HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline", "OMP_NUM_THREADS": "2",
}

// lookGrace is how many seconds after its timeout a look ends by itself, when
// its process was not there to stop it.
const lookGrace = 5

// pythons are the names of Python in images.
var pythons = []string{"python3", "python"}

// lookWithPython runs Python in an image, under the first name that exists.
func lookWithPython(ctx context.Context, docker LocalDocker, look berth.Look, args ...string) (looked berth.Looked, python string, err error) {
	for _, python = range pythons {
		look.Command = append([]string{python}, args...)
		look.Environment, look.MemoryBytes, look.CPUMilli = lookEnvironment, lookMemory, lookCPU

		looked, err = docker.Look(ctx, look)
		if looked.NoUser || !noProgram(looked, err) {
			return looked, python, err
		}
	}

	return looked, "", err
}

// Exit codes of the init process of a container.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// noProgram reports whether a look found no program of its name.
func noProgram(looked berth.Looked, err error) bool {
	if looked.Foreign {
		return false
	}

	if start, ok := errors.AsType[*berth.StartError](err); ok {
		return start.Kind == berth.FailureBadCommand
	}

	return err == nil && !looked.TimedOut && (looked.ExitCode == exitNotFound || looked.ExitCode == exitNotExecutable) && len(looked.Stdout) == 0
}

// caller is the user whose files a look reads: the user of the command. Root's
// are read as a trial would, without privileges.
func caller() string {
	if os.Getuid() <= 0 {
		return ""
	}

	return strconv.Itoa(os.Getuid()) + ":" + strconv.Itoa(os.Getgid())
}

// dockerError says what to do about an error of Docker's.
func dockerError(image string, err error) error {
	if problem, ok := errors.AsType[*berth.SpecError](err); ok {
		if problem.Problems[0].Code == "E_IMAGE_MISSING" {
			return exitf(ExitNotFound, "image %q is not on this machine; type `docker pull %s`, or build it: `docker build -t %s .`", image, image, image)
		}

		return exitf(ExitValidation, "%s", problem.Problems[0].Message)
	}

	switch {
	case berth.KindOf(err) == berth.KindNotFound:
		return exitf(ExitError, "%w; type the same on the machine of Docker's daemon", err)
	case errors.Is(err, context.Canceled):
		return exitf(ExitInterrupt, "interrupted; its container is removed")
	case berth.KindOf(err) == berth.KindUnavailable:
		return exitf(ExitUnreachable, "%w; start it (`sudo systemctl start docker`), and see with `docker version` "+
			"whether you may use it (group docker, or DOCKER_HOST)", err)
	default:
		return fmt.Errorf("looking into image %q: %w", image, err)
	}
}

// openDocker connects to this machine's Docker.
func (o *options) openDocker() (LocalDocker, error) {
	if o.docker == nil {
		return nil, exitf(ExitError, "this berth was built without Docker's client")
	}

	return o.docker()
}

// lookTimeout is how long a look may take. TensorFlow's import takes 3 to 10 s, and more
// where nothing is byte-compiled or disks are slow.
const lookTimeout = 2 * time.Minute
