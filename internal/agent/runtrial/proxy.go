package runtrial

import (
	"slices"
	"strings"
)

// noProxy is what trials reach without the proxy: themselves, and a cloud's metadata
// service, which the proxy would reach for them.
const noProxy = "localhost,127.0.0.1,::1,169.254.169.254"

// proxyDefaults are the variables by which programs find a proxy, in both ways in which
// programs write them. Where a sweep has one, written either way, it has both.
func proxyDefaults(proxy string, users map[string]string) map[string]string {
	env := make(map[string]string)

	for name, value := range map[string]string{"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": noProxy} {
		lower := strings.ToLower(name)
		if !slices.ContainsFunc([]string{name, lower}, func(n string) bool { _, set := users[n]; return set }) {
			env[name], env[lower] = value, value
		}
	}

	return env
}
