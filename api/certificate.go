package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/health"
)

const (
	// certificateEvery is how often the files are read again: a renewal is served
	// within this time.
	certificateEvery = 10 * time.Second
	// certificateSoon is how long before its end a certificate is a warning: half
	// of certbot's margin, which renews 30 days before the end.
	certificateSoon = 14 * 24 * time.Hour
)

// Certificate is the server's own, from two PEM files that are read again when
// they change. An unusable new file changes only the health report.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time
	every             time.Duration

	mu      sync.Mutex
	files   [2][]byte // contents of current
	current *tls.Certificate
	problem string // of the newest files; empty = current comes from them
}

// LoadCertificate reads a certificate with its chain, and its key. An expired or
// not yet valid certificate is only a warning: the server does more than answer.
// Errors: invalid, which names the flag.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	if certFile == "" || keyFile == "" {
		return nil, berth.Errorf(berth.KindInvalid, "--tls-cert %q and --tls-key %q: give both, or neither for plain HTTP", certFile, keyFile)
	}

	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log, now: time.Now, every: certificateEvery}

	files, err := c.read()
	if err != nil {
		return nil, err
	}

	if c.current, err = c.parse(files); err != nil {
		return nil, err
	}

	c.files = files

	if f := c.finding(); f.Next != "" {
		log.Warn("the server's certificate: "+f.What, "next", f.Next)
	}

	return c, nil
}

// config is the server's TLS settings: Go's defaults, which begin with TLS 1.2.
func (c *Certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c.mu.Lock()
			defer c.mu.Unlock()

			return c.current, nil
		},
	}
}

// run looks at the files until ctx ends.
func (c *Certificate) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(c.every):
			c.reloadFiles()
		}
	}
}

// reloadFiles loads changed files. It logs a problem with them once.
func (c *Certificate) reloadFiles() {
	next, files, err := c.changed()

	c.mu.Lock()
	defer c.mu.Unlock()

	if err != nil {
		if c.problem != err.Error() {
			c.problem = err.Error()
			c.log.Error("the new certificate cannot be used; the server goes on with the one it has", "error", err, "ends", c.current.Leaf.NotAfter)
		}

		return
	}

	c.problem = ""

	if next != nil {
		c.current, c.files = next, files
		c.log.Info("the server has a new certificate", "names", next.Leaf.DNSNames, "ends", next.Leaf.NotAfter)
	}
}

// changed reads the files; no certificate without an error is the same as before.
func (c *Certificate) changed() (*tls.Certificate, [2][]byte, error) {
	files, err := c.read()
	if err != nil {
		return nil, files, err
	}

	c.mu.Lock()
	now := c.now()
	same := bytes.Equal(files[0], c.files[0]) && bytes.Equal(files[1], c.files[1])
	c.mu.Unlock()

	if same {
		return nil, files, nil
	}

	next, err := c.parse(files)

	switch {
	case err != nil:
	case now.After(next.Leaf.NotAfter):
		err = berth.Errorf(berth.KindInvalid, "--tls-cert %q: the new certificate ended at %s", c.certFile, next.Leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(next.Leaf.NotBefore):
		err = berth.Errorf(berth.KindInvalid, "--tls-cert %q: the new certificate holds from %s only, when the server takes it over",
			c.certFile, next.Leaf.NotBefore.UTC().Format(time.RFC3339))
	}

	return next, files, err
}

func (c *Certificate) read() (files [2][]byte, err error) {
	for i, of := range []struct{ flag, path string }{{"--tls-cert", c.certFile}, {"--tls-key", c.keyFile}} {
		if files[i], err = os.ReadFile(of.path); err != nil {
			fix := "let the user that Berth runs as read it"
			if errors.Is(err, fs.ErrNotExist) {
				fix = "name a file that is there"
			}

			return files, berth.Errorf(berth.KindInvalid, "%s: %w; %s", of.flag, err, fix)
		}
	}

	return files, nil
}

// parse makes a certificate of the two files.
func (c *Certificate) parse(files [2][]byte) (*tls.Certificate, error) {
	if kinds := pemKinds(files[0]); !strings.Contains(kinds, "CERTIFICATE") {
		return nil, berth.Errorf(berth.KindInvalid, "--tls-cert %q holds %s, and no certificate in PEM: name such as certbot's fullchain.pem", c.certFile, kinds)
	}

	switch kinds := pemKinds(files[1]); {
	case strings.Contains(kinds, "ENCRYPTED"):
		return nil, berth.Errorf(berth.KindInvalid, "--tls-key %q has a passphrase, for which Berth does not ask: remove it by `openssl pkey`", c.keyFile)
	case !strings.Contains(kinds, "PRIVATE KEY"):
		return nil, berth.Errorf(berth.KindInvalid, "--tls-key %q holds %s, and no private key in PEM: name such as certbot's privkey.pem", c.keyFile, kinds)
	}

	pair, err := tls.X509KeyPair(files[0], files[1])
	if err != nil {
		return nil, berth.Errorf(berth.KindInvalid, "--tls-key %q is not the key of --tls-cert %q, whose first certificate must be the server's: %w", c.keyFile, c.certFile, err)
	}

	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, berth.Errorf(berth.KindInvalid, "--tls-cert %q: %w", c.certFile, err)
		}
	}

	return &pair, nil
}

// pemKinds are the kinds of blocks in a file, in words.
func pemKinds(data []byte) string {
	var kinds []string

	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		kind := block.Type
		if block.Headers["DEK-Info"] != "" { // how OpenSSL before version 1 says that there is a passphrase
			kind = "ENCRYPTED " + kind
		}

		kinds = append(kinds, kind)
	}

	if len(kinds) == 0 {
		return "nothing in PEM"
	}

	return strings.Join(kinds, ", ")
}

// finding is what health says of it.
func (c *Certificate) finding() health.Finding {
	c.mu.Lock()
	defer c.mu.Unlock()

	ends, left := c.current.Leaf.NotAfter, c.current.Leaf.NotAfter.Sub(c.now())
	next := fmt.Sprintf("renew %s and %s; the server takes new files within %s, without a restart", c.certFile, c.keyFile, c.every)
	finding := health.Finding{OK: true, Part: "certificate", What: "ends at " + ends.UTC().Format(time.RFC3339)}

	switch {
	case left <= 0:
		finding.OK, finding.What, finding.Next = false, "ended at "+ends.UTC().Format(time.RFC3339)+": clients refuse it", next
	case c.now().Before(c.current.Leaf.NotBefore):
		finding.OK, finding.What = false, "holds from "+c.current.Leaf.NotBefore.UTC().Format(time.RFC3339)+" only: clients refuse it"
		finding.Next = "set this machine's clock, or use another certificate"
	case left < certificateSoon:
		finding.Warn, finding.What, finding.Next = true, fmt.Sprintf("%s, in %d days", finding.What, int(left.Hours()/24)), next
	}

	if c.problem != "" {
		finding.Warn = finding.OK
		finding.What += "; the newest files cannot be used: " + c.problem
		finding.Next = "mend these files; until then the server goes on with the certificate it has"
	}

	return finding
}
