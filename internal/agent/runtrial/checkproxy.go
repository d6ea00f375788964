package runtrial

import (
	"net"
	"net/url"
	"strings"

	"github.com/berthml/berth"
)

// CheckProxy looks at --trial-proxy, which is Config.Proxy. Errors: invalid.
func CheckProxy(proxy string) error {
	if proxy == "" {
		return nil
	}

	switch u, err := url.Parse(proxy); {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return berth.Errorf(berth.KindInvalid, "--trial-proxy must be a URL such as http://10.0.0.1:3128")
	case u.User != nil:
		return berth.Errorf(berth.KindInvalid, "--trial-proxy must have no name and password: every trial could read them; let the proxy know this machine by its address")
	case strings.EqualFold(u.Hostname(), "localhost"), net.ParseIP(u.Hostname()).IsLoopback():
		return berth.Errorf(berth.KindInvalid, "--trial-proxy %q is on loopback, and a trial's own loopback is not the machine's: name an address of the machine", proxy)
	default:
		return nil
	}
}
