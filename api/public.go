package api

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/berthml/berth"
)

// withPublicURL is the config with the public URL applied: its host name is allowed,
// and its path is the base path. Errors: invalid.
func (c Config) withPublicURL() (Config, error) {
	if c.PublicURL == "" {
		return c, nil
	}

	u, err := url.Parse(c.PublicURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return c, berth.Errorf(berth.KindInvalid, "--public-url %q must be such as https://berth.example/, without user, query and fragment", c.PublicURL)
	}

	u.Host = originHost(u)
	c.PublicURL = u.String() // with its scheme in lower case
	c.origin = u.Scheme + "://" + u.Host
	c.basePath = cmp.Or(u.Path, "/")
	c.AllowedHosts = append([]string{hostName(u.Host)}, c.AllowedHosts...)

	return c, nil
}

// originHost is the host of a URL as browsers write it in an origin: in lower case,
// and without the scheme's own port.
func originHost(u *url.URL) string {
	host := strings.ToLower(u.Host)

	return strings.TrimSuffix(strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme]), ":")
}
