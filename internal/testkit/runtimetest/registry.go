package runtimetest

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// User and Password of a registry that wants a login. registryUsers is its htpasswd file.
const (
	RegistryUser     = "berth"
	RegistryPassword = "secret"
	registryUsers    = "berth:$2a$05$M5gM5CRMVANmcmxnDrX58e9gJnPNC/tKFWF7CP4OcVr9wQ7dw24eK\n"
)

// Registry is the distribution project's registry with its own storage, behind a
// proxy that can break it.
type Registry struct {
	Addr string // of the proxy: host:port

	mu      sync.Mutex
	down    bool
	slow    int           // bytes of a layer after which it pauses; 0 = it does not
	reached chan struct{} // one for each layer that paused
	goOn    chan struct{} // closed when it goes on
	layers  int           // how many were asked for
}

// NewRegistry starts a registry. The program is built by `make .build/registry`.
func NewRegistry(t testing.TB, login bool) *Registry {
	t.Helper()

	program, err := exec.LookPath("registry")
	if err != nil {
		Skip(t, "no registry on the PATH: run `make .build/registry` and put .build on it")
	}

	dir := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends at once
	require.NoError(t, err)

	behind := listener.Addr().String()
	require.NoError(t, listener.Close())

	config := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q, relativeurls: true}\n", dir, behind)
	if login {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "htpasswd"), []byte(registryUsers), 0o600))
		config += fmt.Sprintf("auth: {htpasswd: {realm: test, path: %s/htpasswd}}\n", dir)
	}

	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yml"), []byte(config), 0o600))

	cmd := exec.Command(program, "serve", filepath.Join(dir, "config.yml")) //nolint:noctx // killed below
	cmd.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}

	out, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)

	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = out.Close()
	})

	require.Eventually(t, func() bool {
		connection, err := net.Dial("tcp", behind) //nolint:noctx // local
		if err != nil {
			return false
		}

		return connection.Close() == nil
	}, patience, tick, "the registry does not start")

	r := &Registry{reached: make(chan struct{}, 100)}
	target := &url.URL{Scheme: "http", Host: behind}
	proxy := httptest.NewServer(r.through(&httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(target); p.Out.Host = p.In.Host },
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}))
	t.Cleanup(func() { r.GoOn(); proxy.CloseClientConnections(); proxy.Close() })

	r.Addr = strings.TrimPrefix(proxy.URL, "http://")

	return r
}

// through is the proxy with the test's faults.
func (r *Registry) through(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		layer := q.Method == http.MethodGet && strings.Contains(q.URL.Path, "/blobs/")
		down, slow, goOn := r.down, r.slow, r.goOn
		r.mu.Unlock()

		if down {
			panic(http.ErrAbortHandler)
		}

		if !layer {
			next.ServeHTTP(w, q)

			return
		}

		g := &gate{ResponseWriter: w, registry: r, limit: slow, goOn: goOn, gone: q.Context().Done()}
		next.ServeHTTP(g, q)

		if g.sent > layerBytes/2 { // configurations are small
			r.mu.Lock()
			r.layers++
			r.mu.Unlock()
		}
	})
}

// gate passes on a layer, up to a limit until the test lets it.
type gate struct {
	http.ResponseWriter

	registry *Registry
	sent     int
	limit    int
	goOn     chan struct{}
	gone     <-chan struct{}
}

func (g *gate) Write(p []byte) (int, error) {
	if g.limit > 0 && g.sent+len(p) > g.limit {
		g.limit = 0
		g.registry.reached <- struct{}{}

		select {
		case <-g.goOn:
		case <-g.gone:
		}

		g.registry.mu.Lock()
		down := g.registry.down
		g.registry.mu.Unlock()

		if down {
			panic(http.ErrAbortHandler)
		}
	}

	n, err := g.ResponseWriter.Write(p)
	g.sent += n

	return n, err
}

// Flush lets the sent bytes arrive before the pause.
func (g *gate) Flush() {
	_ = http.NewResponseController(g.ResponseWriter).Flush()
}

// Down stops or starts to answer.
func (r *Registry) Down(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.down = down
}

// PauseAfter stops layers after this many bytes. The channel gets one for each.
func (r *Registry) PauseAfter(bytes int) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.slow, r.goOn = bytes, make(chan struct{})

	return r.reached
}

// GoOn ends the pause.
func (r *Registry) GoOn() {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.slow > 0 {
		close(r.goOn)
	}

	r.slow = 0
}

// Layers is how many layers of test images were sent so far.
func (r *Registry) Layers() int {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.layers
}

// layerBytes is the size of a test image's layer, compressed or not.
const layerBytes = 3 << 20

// Push makes an image that no other test has, base plus a unique layer, pushes it
// under this name, and removes it from this machine. It returns its digest.
func (r *Registry) Push(t testing.TB, name, base string, dockerfile ...string) (digest string) {
	t.Helper()

	dir := t.TempDir()
	random := rand.NewChaCha8([32]byte([]byte(strings.ReplaceAll(uuid.NewString(), "-", ""))))
	content := make([]byte, layerBytes)
	_, _ = random.Read(content)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "layer"), content, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"),
		[]byte("FROM "+base+"\nCOPY layer /layer\n"+strings.Join(dockerfile, "\n")+"\n"), 0o600))

	command(t, "build", "--quiet", "--no-cache", "--tag", r.Addr+"/"+name, dir)

	return r.Keep(t, name)
}

// Keep pushes an image of this machine that has a name of the registry, and removes it
// from this machine. It returns its digest.
func (r *Registry) Keep(t testing.TB, name string) (digest string) {
	t.Helper()

	ref := r.Addr + "/" + name
	login := filepath.Join(t.TempDir(), "docker")
	r.Login(t, login, RegistryPassword)
	command(t, "--config", login, "push", "--quiet", ref)

	repository := ref[:strings.LastIndexByte(ref, ':')]

	for one := range strings.FieldsSeq(command(t, "image", "inspect", "--format", "{{range .RepoDigests}}{{.}} {{end}}", ref)) {
		if strings.HasPrefix(one, repository+"@") {
			digest = one
		}
	}

	require.NotEmpty(t, digest, "docker says no digest of %s", ref)
	command(t, "rmi", "--force", ref)
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", "--force", digest).Run() }) //nolint:noctx // what the test pulled

	return digest
}

// Login writes a docker configuration that has a login of this registry.
func (r *Registry) Login(t testing.TB, dir, password string) {
	t.Helper()

	require.NoError(t, os.MkdirAll(dir, 0o700))

	auth := base64.StdEncoding.EncodeToString([]byte(RegistryUser + ":" + password))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"auths": {"`+r.Addr+`": {"auth": "`+auth+`"}}}`), 0o600))
}

func command(t testing.TB, args ...string) string {
	t.Helper()

	cmd := exec.Command("docker", args...) //nolint:noctx // ends by itself
	cmd.Env = append(os.Environ(), "DOCKER_BUILDKIT=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "docker %s: %s", strings.Join(args, " "), out)

	return string(out)
}
