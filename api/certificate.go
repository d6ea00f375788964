package api

import (
	"crypto/tls"
	"fmt"
	"log/slog"
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

// Certificate is the server's own, from two PEM files that are read again when a
// client connects, or asks for health, ten seconds later.
// An unusable new file changes only the health report.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time
	every             time.Duration

	mu      sync.Mutex
	looked  time.Time // when the files were read last
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

	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log, now: time.Now, every: certificateEvery, looked: time.Now()}

	var err error
	if c.current, err = c.read(); err != nil {
		return nil, err
	}

	if f := c.finding(); f.Next != "" {
		log.Warn("the server's certificate: "+f.What, "next", f.Next)
	}

	return c, nil
}

// read reads the two files. Errors: invalid.
func (c *Certificate) read() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return nil, berth.Errorf(berth.KindInvalid, "--tls-cert %q and --tls-key %q must be PEM files that Berth's user may read, "+
			"such as certbot's fullchain.pem and privkey.pem, the key without a passphrase: %w", c.certFile, c.keyFile, err)
	}

	return &pair, nil
}

// config is the server's TLS settings: Go's defaults, which begin with TLS 1.2.
func (c *Certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c.mu.Lock()
			defer c.mu.Unlock()

			c.reloadFiles()

			return c.current, nil
		},
	}
}

// reloadFiles takes over files that have changed since the last look. It logs a problem
// with them once.
func (c *Certificate) reloadFiles() {
	if time.Since(c.looked) < c.every {
		return
	}

	c.looked = time.Now()
	next, err := c.read()

	if err == nil && next.Leaf.Equal(c.current.Leaf) {
		c.problem = ""

		return
	}

	if err == nil && (c.now().After(next.Leaf.NotAfter) || c.now().Before(next.Leaf.NotBefore)) {
		err = berth.Errorf(berth.KindInvalid, "--tls-cert %q: the new certificate holds from %s to %s", c.certFile,
			next.Leaf.NotBefore.UTC().Format(time.RFC3339), next.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}

	if err == nil {
		c.current, c.problem = next, ""
		c.log.Info("the server has a new certificate", "names", next.Leaf.DNSNames, "ends", next.Leaf.NotAfter)
	} else if c.problem != err.Error() {
		c.problem = err.Error()
		c.log.Error("the new certificate cannot be used; the server goes on with the one it has", "error", err, "ends", c.current.Leaf.NotAfter)
	}
}

// finding is what health says of it.
func (c *Certificate) finding() health.Finding {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.reloadFiles()

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
