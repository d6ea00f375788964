package backends

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/berthml/berth"
)

// TLS says how Temporal is reached by TLS. Each flag goes over Temporal's
// own variable, such as TEMPORAL_TLS_SERVER_CA_CERT_PATH, and turns TLS on.
type TLS struct {
	ca, cert, key string // PEM files
	serverName    string
	apiKeyFile    string
}

func (t *TLS) bind(flags *pflag.FlagSet) {
	flags.StringVar(&t.ca, "temporal-tls-ca", "", "PEM file of the authority that signed Temporal's certificate, read at the start; default: those that this machine trusts")
	flags.StringVar(&t.cert, "temporal-tls-cert", "", "PEM file of the certificate that Temporal asks its clients for, read at each connection; with --temporal-tls-key")
	flags.StringVar(&t.key, "temporal-tls-key", "", "PEM file of its key")
	flags.StringVar(&t.serverName, "temporal-tls-server-name", "", "name in Temporal's certificate; default: the host of --temporal-address")
	flags.StringVar(&t.apiKeyFile, "temporal-api-key-file", "", "file of an API key, such as Temporal Cloud's, read at each call; by TLS")
}

// apply sets the connection up. Errors: invalid, which name the flag.
func (t *TLS) apply(options *client.Options) error {
	config := options.ConnectionOptions.TLS
	if *t != (TLS{}) {
		config = config.Clone() // nil stays nil
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	}

	if (t.cert == "") != (t.key == "") {
		return berth.Errorf(berth.KindInvalid, "--temporal-tls-cert %q and --temporal-tls-key %q: give both or neither", t.cert, t.key)
	}

	if t.ca != "" {
		trusted, err := authorities("--temporal-tls-ca", t.ca)
		if err != nil {
			return err
		}

		config.RootCAs = trusted
	}

	if t.cert != "" {
		if _, err := t.pair(); err != nil {
			return err
		}

		config.Certificates = nil
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.pair() }
	}

	if t.serverName != "" {
		config.ServerName = t.serverName
	}

	if t.apiKeyFile != "" {
		if _, err := t.apiKey(); err != nil {
			return err
		}

		options.Credentials = client.NewAPIKeyDynamicCredentials(func(context.Context) (string, error) { return t.apiKey() })
	}

	transport := insecure.NewCredentials()
	if config != nil {
		transport = credentials.NewTLS(config)
	}

	options.ConnectionOptions.TLS = config
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions,
		grpc.WithTransportCredentials(&explained{TransportCredentials: transport, plain: config == nil}))

	return nil
}

// pair reads our certificate, which may have been renewed.
func (t *TLS) pair() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(t.cert, t.key)
	if err != nil {
		return nil, berth.Errorf(berth.KindInvalid, "--temporal-tls-cert %q and --temporal-tls-key %q must be PEM files of a certificate and its key: %w", t.cert, t.key, err)
	}

	return &pair, nil
}

// apiKey reads the key, which may have been replaced.
func (t *TLS) apiKey() (string, error) {
	text, err := os.ReadFile(t.apiKeyFile)
	if err != nil {
		return "", berth.Errorf(berth.KindInvalid, "--temporal-api-key-file: %w", err)
	}

	key := strings.TrimSpace(string(text))
	if key == "" || strings.ContainsAny(key, "\n\r") {
		return "", berth.Errorf(berth.KindInvalid, "--temporal-api-key-file %q must hold one key and nothing else", t.apiKeyFile)
	}

	return key, nil
}

// authorities reads the certificates in a PEM file.
func authorities(flag, path string) (*x509.CertPool, error) {
	data, err := os.ReadFile(path) //nolint:gosec // G304: the user names it
	if err != nil {
		return nil, berth.Errorf(berth.KindInvalid, "%s: %w", flag, err)
	}

	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, berth.Errorf(berth.KindInvalid, "%s %q holds no certificate in PEM", flag, path)
	}

	return pool, nil
}

// explained are credentials whose errors name the flag to change. gRPC keeps
// only the text of an error, so only here is its cause known.
type explained struct {
	credentials.TransportCredentials

	plain bool
}

func (e *explained) Clone() credentials.TransportCredentials {
	return &explained{TransportCredentials: e.TransportCredentials.Clone(), plain: e.plain}
}

// ClientHandshake begins a connection.
func (e *explained) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := e.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, explainTLS(err)
	}

	return &firstWord{Conn: conn, plain: e.plain}, info, nil
}

const wantsCertificate = "when Temporal asks for certificates, --temporal-tls-cert and --temporal-tls-key must be of an authority that it trusts"

// firstWord explains why a connection ends before the peer says anything: by TLS
// 1.3 a server refuses a client's certificate only after the handshake.
type firstWord struct {
	net.Conn

	plain bool
	heard atomic.Bool
}

func (f *firstWord) Read(data []byte) (int, error) {
	n, err := f.Conn.Read(data)
	if n > 0 {
		f.heard.Store(true)
	}

	return n, f.explain(err)
}

func (f *firstWord) Write(data []byte) (int, error) {
	n, err := f.Conn.Write(data)

	return n, f.explain(err)
}

func (f *firstWord) explain(err error) error {
	if err == nil || f.heard.Load() || errors.Is(err, net.ErrClosed) {
		return err
	}

	if f.plain {
		return fmt.Errorf("%w; when Temporal speaks TLS, give --temporal-tls-ca", err)
	}

	return fmt.Errorf("%w; %s", err, wantsCertificate)
}

// explainTLS adds the flag to change.
func explainTLS(err error) error {
	if failed, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		if name, ok := errors.AsType[x509.HostnameError](failed.Err); ok {
			names := name.Certificate.DNSNames
			for _, ip := range name.Certificate.IPAddresses {
				names = append(names, ip.String())
			}

			return fmt.Errorf("Temporal's certificate is refused: it is for %s and not for %q: give --temporal-tls-server-name", //nolint:staticcheck // a name
				cmp.Or(strings.Join(names, ", "), "no name"), name.Host)
		}

		return fmt.Errorf("Temporal's certificate is refused: %w: --temporal-tls-ca must name the authority that signed it", failed.Err) //nolint:staticcheck // a name
	}

	if remote, ok := errors.AsType[*net.OpError](err); ok && remote.Op == "remote error" { // how crypto/tls marks the peer's alerts
		return fmt.Errorf("Temporal refuses this client: %w: %s", err, wantsCertificate) //nolint:staticcheck // a name
	}

	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return fmt.Errorf("%w: Temporal speaks no TLS there: leave out --temporal-tls-... and --temporal-api-key-file", err)
	}

	return err
}
