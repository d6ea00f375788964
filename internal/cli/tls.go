package cli

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
)

// transport trusts the authorities of this machine, and of --ca-file.
func (o *options) transport() (http.RoundTripper, error) {
	path := cmp.Or(o.caFile, o.getenv("BERTH_CA_FILE"))
	if path == "" {
		return http.DefaultTransport, nil
	}

	data, err := os.ReadFile(path) //nolint:gosec // G304: the user names it
	if err != nil {
		return nil, exitf(ExitUsage, "--ca-file: %w", err)
	}

	trusted, err := x509.SystemCertPool()
	if err != nil {
		return nil, exitf(ExitError, "reading the authorities that this machine trusts: %w", err)
	}

	if !trusted.AppendCertsFromPEM(data) {
		return nil, exitf(ExitUsage, "--ca-file %q holds no certificate in PEM; name the file of the authority that signed the server's", path)
	}

	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, exitf(ExitError, "--ca-file: this program's HTTP client is not Go's")
	}

	transport = transport.Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}

	return transport, nil
}

// plainOnTLS is in the answer of Go's server to HTTP where it speaks TLS.
const plainOnTLS = "HTTP request to an HTTPS server"

// refusedTLS names the flag to change when the two ends do not agree on TLS,
// which waiting does not mend; nil for another error.
func refusedTLS(err error) error {
	if errors.Is(err, http.ErrSchemeMismatch) {
		return exitf(ExitUsage, "the server does not speak TLS there: write http:// in --server or BERTH_SERVER")
	}

	failed, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok {
		return nil
	}

	fix := "its date and its name must fit: --server has to name the server as the certificate does"

	if _, unknown := errors.AsType[x509.UnknownAuthorityError](failed.Err); unknown {
		fix = "if an authority of your own signed it, give that one's file by --ca-file or BERTH_CA_FILE"
	}

	return exitf(ExitUsage, "the server's certificate is refused: %w; %s", failed.Err, fix)
}
