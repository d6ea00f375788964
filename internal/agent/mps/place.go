package mps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/berthml/berth"
)

const (
	// maxSocketPath is the longest path of a Unix socket: sun_path has 108 bytes on
	// Linux; the last one is 0 (unix(7)).
	maxSocketPath = 107

	// privilegedSocket is for the daemon's administrators. No other name there is longer.
	privilegedSocket = "control_privileged"
)

// uuidPattern is how the driver writes the UUID of a GPU or of a MIG device. It
// keeps a UUID from naming a path.
var uuidPattern = regexp.MustCompile(`^(GPU|MIG)-([0-9a-fA-F]{8})[0-9a-fA-F-]*$`)

// gpu is the daemon's place on disk, of one GPU.
type gpu struct {
	uuid string
	dir  string
	pipe string // sockets, pid file; mounted into containers, whose users may write there
	log  string // control.log, server.log, and start.log: the program's output at its start

	turn chan struct{} // one element, of the call whose turn it is
}

// gpu returns a GPU's place, always the same one. Its directory has the first 8
// hexadecimal digits of the UUID as name, because socket paths are short.
func (m *MPS) gpu(uuid string) *gpu {
	m.mu.Lock()
	defer m.mu.Unlock()

	if g, known := m.gpus[uuid]; known {
		return g
	}

	short := "unknown" // Start refuses it
	if parts := uuidPattern.FindStringSubmatch(uuid); parts != nil {
		short = parts[2]
	}

	dir := filepath.Join(m.dir, short)
	g := &gpu{uuid: uuid, dir: dir, pipe: filepath.Join(dir, "pipe"), log: filepath.Join(dir, "log"), turn: make(chan struct{}, 1)}
	m.gpus[uuid] = g

	return g
}

// takeDir waits for the caller's turn at the GPU. Give it back.
func (g *gpu) takeDir(ctx context.Context) error {
	select {
	case g.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the MPS control daemon of GPU %q: %w", g.uuid, context.Cause(ctx))
	}
}

func (g *gpu) giveDir() { <-g.turn }

// check reports whether the GPU can have a directory at all.
func (g *gpu) check() error {
	if !uuidPattern.MatchString(g.uuid) {
		return berth.Errorf(berth.KindInvalid, "%q is no UUID of a GPU: give one as `nvidia-smi -L` prints it", g.uuid)
	}

	if path := filepath.Join(g.pipe, privilegedSocket); len(path) > maxSocketPath {
		return berth.Errorf(berth.KindInvalid, "the MPS socket %q would have a path of %d bytes, and Linux allows %d: choose a data directory whose path is at least %d bytes shorter",
			path, len(path), maxSocketPath, len(path)-maxSocketPath)
	}

	return nil
}

// prepare makes the directories.
func (g *gpu) prepare() error {
	// Any container's user connects in pipe. A server of a program without
	// -multiuser-server runs as that user and writes to log. The umask is not asked.
	for _, dir := range []string{g.pipe, g.log} {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // G301: for servers of other users
			return g.failed(err)
		}

		if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // G302: see above
			return g.failed(err)
		}
	}

	return nil
}

// openToUsers lets any user connect to the daemon's sockets in pipe, but not to the
// socket of its administrators, who may end it and its clients. It follows no
// links and reaches nothing outside pipe: containers may write there.
func (g *gpu) openToUsers() error {
	return g.within(g.pipe, func(root *os.Root, entry fs.DirEntry) error {
		if entry.Type()&(fs.ModeSymlink|fs.ModeDir) != 0 || entry.Name() == privilegedSocket {
			return nil
		}

		err := root.Chmod(entry.Name(), 0o666)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}

		return err
	})
}

// clearPipe removes a dead daemon's files in pipe. The directory itself stays:
// containers may have it mounted.
func (g *gpu) clearPipe() error {
	return g.within(g.pipe, func(root *os.Root, entry fs.DirEntry) error { return root.RemoveAll(entry.Name()) })
}

// within calls f for each entry of one of the GPU's directories.
func (g *gpu) within(dir string, f func(*os.Root, fs.DirEntry) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return g.failed(err)
	}
	defer root.Close() //nolint:errcheck // nothing was written through it

	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return g.failed(err)
	}

	for _, entry := range entries {
		if err := f(root, entry); err != nil {
			return g.failed(err)
		}
	}

	return nil
}

func (g *gpu) failed(err error) error {
	return berth.Errorf(berth.KindInternal, "preparing MPS for GPU %q in %q: %w", g.uuid, g.dir, err)
}

// endOfLog returns the end of a log, from a byte on: its last lines in one, for an
// error's text. Empty = no log.
func (g *gpu) endOfLog(name string, from int64) string {
	const most = 1024

	root, err := os.OpenRoot(g.log)
	if err != nil {
		return ""
	}
	defer root.Close() //nolint:errcheck // nothing was written through it

	file, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close() //nolint:errcheck // nothing was written through it

	size := sizeOf(file)
	content, _ := io.ReadAll(io.NewSectionReader(file, max(from, size-most), most)) // a partial text is better than nothing

	return strings.Join(strings.FieldsFunc(string(content), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

func sizeOf(file *os.File) int64 {
	info, err := file.Stat()
	if err != nil {
		return 0
	}

	return info.Size()
}

// controlLogSize is how long the daemon's log is now.
func (g *gpu) controlLogSize() int64 {
	info, err := os.Lstat(filepath.Join(g.log, controlLog))
	if err != nil {
		return 0
	}

	return info.Size()
}
