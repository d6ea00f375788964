package cli

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// fakeDocker answers looks as the test says.
type fakeDocker struct {
	facts  map[string]berth.Image
	looked func(l berth.Look) (berth.Looked, error)
	looks  []berth.Look
}

func (f *fakeDocker) ResolveImage(_ context.Context, image string) (berth.Image, error) {
	facts, ok := f.facts[image]
	if !ok {
		return facts, &berth.SpecError{Problems: []berth.Problem{{Code: "E_IMAGE_MISSING", Pointer: "/image", Message: "it is not here"}}}
	}

	return facts, nil
}

func (f *fakeDocker) Look(_ context.Context, l berth.Look) (berth.Looked, error) {
	f.looks = append(f.looks, l)

	return f.looked(l)
}

func (f *fakeDocker) Close() error { return nil }

// run runs a command of this machine's Docker.
func (f *fakeDocker) run(t *testing.T, args ...string) outcome {
	t.Helper()

	var out, errs bytes.Buffer

	o := &options{getenv: func(string) string { return "" }, now: time.Now, docker: func() (LocalDocker, error) { return f, nil }}
	root := &cobra.Command{Use: "berth", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(o.commands()...)
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)

	err := root.ExecuteContext(t.Context())
	if err != nil {
		errs.WriteString(err.Error())
	}

	return outcome{stdout: out.String(), stderr: errs.String(), code: ExitCode(err), err: err}
}

const driverMark = "\n\x1eberth-flags "

func TestImageCheck_SaysWhatIsThere(t *testing.T) {
	t.Parallel()

	const inside = driverMark + `{"python": "3.11.2", "uid": 65532, "gid": 65532, "frameworks": [{"module": "torch", "version": "2.9", "import_seconds": 1.5},` +
		`{"module": "tensorflow", "version": "2.21.0", "import_seconds": 0.4, "error": "ImportError: no libx.so"}]}` + "\n" + driverMark + `{"pyth`

	f := &fakeDocker{
		facts: map[string]berth.Image{"mine:1": {SizeBytes: 3 << 30, OS: "linux", Architecture: "amd64", Volumes: []string{"/data"}, Entrypoint: []string{"/start.sh"}}},
		looked: func(berth.Look) (berth.Looked, error) {
			return berth.Looked{Stdout: []byte(inside), FirstOutput: 300 * time.Millisecond}, nil
		},
	}

	got := f.run(t, "image", "check", "mine:1")
	require.Equal(t, ExitOK, got.code, got.stderr)
	require.Len(t, f.looks, 1)
	require.Empty(t, f.looks[0].User, "as a trial")

	for _, want := range []string{
		"container starts in  0.3 s", "65532:65532", "/data", "/start.sh", "imported in 1.5 s", "ImportError: no libx.so",
	} {
		require.Contains(t, got.stdout, want)
	}

	got = f.run(t, "image", "check", "mine:1", "-o", "json")
	require.Equal(t, ExitOK, got.code)
	require.Contains(t, got.stdout, `"import_seconds": 1.5`)
}

func TestImageCheck_NoTrialCanRun(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		looked berth.Looked
		err    error
		want   string
	}{
		"other processor": {berth.Looked{ExitCode: 1, Foreign: true}, nil, "is for another kind of processor than this machine's"},
		"root only":       {berth.Looked{ExitCode: 1, Stderr: []byte("Fatal Python error: init_fs_encoding: PermissionError")}, nil, "Python does not start for a user without rights within 5m0s (exit code 1): Fatal Python error"},
		"no such user":    {berth.Looked{NoUser: true}, &berth.StartError{Kind: berth.FailureBadCommand, Err: errors.New("unable to find user me")}, "does not know its own user; write into the Dockerfile: USER 65532:65532"},
		"too slow":        {berth.Looked{TimedOut: true}, nil, "does not start for a user without rights within 5m0s"},
		"no start":        {berth.Looked{}, &berth.StartError{Kind: berth.FailureInfra, Err: errors.New("runc is sick")}, "runc is sick"},
	} {
		f := &fakeDocker{
			facts:  map[string]berth.Image{"mine:1": {OS: "linux", Architecture: "arm64"}},
			looked: func(berth.Look) (berth.Looked, error) { return test.looked, test.err },
		}

		got := f.run(t, "image", "check", "mine:1")
		require.Equal(t, ExitError, got.code, name)
		require.Contains(t, got.stderr, `image "mine:1"`, name)
		require.Contains(t, got.stderr, test.want, name)
	}

	f := &fakeDocker{facts: map[string]berth.Image{}}
	got := f.run(t, "image", "check", "mine:1")
	require.Equal(t, ExitNotFound, got.code)
	require.Contains(t, got.stderr, "docker pull mine:1")
}

// Any program can be a trial.
func TestImageCheck_WithoutPython(t *testing.T) {
	t.Parallel()

	f := &fakeDocker{
		facts:  map[string]berth.Image{"mine:1": {OS: "linux", Architecture: "amd64"}},
		looked: func(berth.Look) (berth.Looked, error) { return berth.Looked{ExitCode: 127}, nil },
	}

	got := f.run(t, "image", "check", "mine:1")
	require.Equal(t, ExitOK, got.code, got.stderr)
	require.Contains(t, got.stdout, "any program can be a trial")
}
