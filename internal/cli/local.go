package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/berthml/berth"
)

// LocalDocker is this machine's Docker, for init and image check.
type LocalDocker interface {
	// ResolveImage finds an image; a *berth.SpecError when it is missing.
	ResolveImage(ctx context.Context, image string) (berth.Image, error)
	// Look runs a container to its end.
	Look(ctx context.Context, look berth.Look) (berth.Looked, error)
	Close() error
}

const (
	lookMemory = 4 << 30 // importing TensorFlow or PyTorch takes 0.6 to 1.5 GiB
	lookCPU    = 2000
	// lookGrace is how many seconds after its timeout a look ends by itself, when
	// its process was not there to stop it.
	lookGrace = 5
	// lookTimeout is how long a look may take. TensorFlow's import takes 3 to 10 s, and more
	// where nothing is byte-compiled or disks are slow.
	lookTimeout = 2 * time.Minute
)

// lookEnvironment is that of trials, as far as it matters to an import. Without a
// GPU to be seen no framework takes time to look for one.
var lookEnvironment = map[string]string{
	"HOME": "/tmp", "USER": "trial", "LOGNAME": "trial", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1",
	"TF_CPP_MIN_LOG_LEVEL": "3", "HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline", "OMP_NUM_THREADS": "2",
}

// errNoPython is the error of a look into an image without python3, in which other
// programs can be trials.
var errNoPython = errors.New("it has no python3")

// lookWithPython runs a Python program in an image. Its errors say in plain words why
// it did not run, errNoPython among them.
func lookWithPython(ctx context.Context, docker LocalDocker, look berth.Look, args ...string) (berth.Looked, error) {
	const notExecutable, notFound = 126, 127 // exit codes of a container's init process

	look.Command, look.Environment, look.MemoryBytes, look.CPUMilli = append([]string{"python3", "-c"}, args...), lookEnvironment, lookMemory, lookCPU

	looked, err := docker.Look(ctx, look)
	start, refused := errors.AsType[*berth.StartError](err)
	lacks := looked.ExitCode == notFound || looked.ExitCode == notExecutable

	switch {
	case looked.Foreign:
		return looked, exitf(ExitError, "image %q is for another kind of processor than this machine's", look.Image)
	case looked.NoUser:
		return looked, exitf(ExitError, "image %q does not know its own user; write into the Dockerfile: USER 65532:65532", look.Image)
	case refused && start.Kind == berth.FailureBadCommand, err == nil && lacks && !looked.TimedOut && len(looked.Stdout) == 0:
		return looked, exitf(ExitError, "looking into image %q: %w", look.Image, errNoPython)
	case err != nil:
		return looked, dockerError(look.Image, err)
	default:
		return looked, nil
	}
}

// lastWords are the last 300 bytes of a look's errors.
func lastWords(looked berth.Looked) string {
	return cmp.Or(oneLine(string(looked.Stderr[max(0, len(looked.Stderr)-300):])), none)
}

// caller is the user whose files a look reads: the user of the command. Root's
// are read as a trial would, without privileges.
func caller() string {
	if os.Getuid() <= 0 {
		return ""
	}

	return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
}

// dockerError says what to do about an error of Docker's.
func dockerError(image string, err error) error {
	problem, ok := errors.AsType[*berth.SpecError](err)

	switch {
	case ok && problem.Problems[0].Code == "E_IMAGE_MISSING":
		return exitf(ExitNotFound, "image %q is not on this machine; type `docker pull %[1]s`, or build it: `docker build -t %[1]s .`", image)
	case ok:
		return exitf(ExitValidation, "%s", problem.Problems[0].Message)
	case berth.KindOf(err) == berth.KindUnavailable:
		return exitf(ExitUnreachable, "%w; start it (`sudo systemctl start docker`), and see with `docker version` "+
			"whether you may use it (group docker, or DOCKER_HOST)", err)
	default:
		return fmt.Errorf("looking into image %q: %w", image, err)
	}
}
