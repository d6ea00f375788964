package backends

import (
	"cmp"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/berthml/berth"
)

// TLS says how to reach Temporal by TLS. A flag overrides Temporal's own variable, such as
// TEMPORAL_TLS_SERVER_CA_CERT_PATH, and turns TLS on. Files are read once, at the start.
type TLS struct {
	ca, cert, key string // PEM files
	serverName    string
	apiKeyFile    string
}

func (t *TLS) bind(flags *pflag.FlagSet) {
	flags.StringVar(&t.ca, "temporal-tls-ca", "", "PEM file of the authority that signed Temporal's certificate; default: those that this machine trusts")
	flags.StringVar(&t.cert, "temporal-tls-cert", "", "PEM file of the certificate that Temporal asks its clients for; with --temporal-tls-key")
	flags.StringVar(&t.key, "temporal-tls-key", "", "PEM file of its key")
	flags.StringVar(&t.serverName, "temporal-tls-server-name", "", "name in Temporal's certificate; default: the host of --temporal-address")
	flags.StringVar(&t.apiKeyFile, "temporal-api-key-file", "", "file of an API key, such as Temporal Cloud's; turns TLS on")
}

// clientOptions reads Temporal's own variables and file, and puts the flags above them.
// Errors: invalid.
func (b *Backends) clientOptions() (client.Options, error) {
	var (
		profile envconfig.ClientConfigProfile
		err     error
	)

	if !b.OwnTemporal {
		if profile, err = envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{}); err != nil {
			return client.Options{}, berth.Errorf(berth.KindInvalid, "reading Temporal's settings: %w", err)
		}
	}

	profile.Address = cmp.Or(b.TemporalAddress, profile.Address)
	profile.Namespace = cmp.Or(b.TemporalNamespace, profile.Namespace, client.DefaultNamespace)

	if err := b.TLS.apply(&profile); err != nil {
		return client.Options{}, err
	}

	options, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return client.Options{}, berth.Errorf(berth.KindInvalid, "reading the files of --temporal-tls-ca, --temporal-tls-cert and --temporal-tls-key, or of Temporal's own variables: %w", err)
	}

	return options, nil
}

// apply puts the flags above a profile. Errors: invalid.
func (t *TLS) apply(profile *envconfig.ClientConfigProfile) error {
	if *t == (TLS{}) {
		return nil
	}

	if (t.cert == "") != (t.key == "") {
		return berth.Errorf(berth.KindInvalid, "--temporal-tls-cert %q and --temporal-tls-key %q: give both or neither", t.cert, t.key)
	}

	var own envconfig.ClientConfigTLS
	if profile.TLS != nil {
		own = *profile.TLS
	}

	own.Disabled = false
	own.ServerName = cmp.Or(t.serverName, own.ServerName)

	if t.ca != "" {
		own.ServerCACertPath, own.ServerCACertData = t.ca, nil
	}

	if t.cert != "" {
		own.ClientCertPath, own.ClientKeyPath, own.ClientCertData, own.ClientKeyData = t.cert, t.key, nil, nil
	}

	profile.TLS = &own

	if t.apiKeyFile == "" {
		return nil
	}

	text, err := os.ReadFile(t.apiKeyFile)
	if err != nil {
		return berth.Errorf(berth.KindInvalid, "--temporal-api-key-file: %w", err)
	}

	if profile.APIKey = strings.TrimSpace(string(text)); profile.APIKey == "" || strings.ContainsAny(profile.APIKey, "\n\r") {
		return berth.Errorf(berth.KindInvalid, "--temporal-api-key-file %q must hold one key and nothing else", t.apiKeyFile)
	}

	return nil
}
