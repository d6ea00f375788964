package runtrial_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/agent/runtrial"
)

func TestCheckProxy(t *testing.T) {
	t.Parallel()

	for proxy, says := range map[string]string{
		"": "", "http://10.0.0.1:3128": "", "https://proxy.example": "",
		"10.0.0.1:3128": "must be a URL", "socks5://10.0.0.1": "must be a URL", "http://": "must be a URL",
		"http://ada:secret@10.0.0.1:3128": "no name and password", "http://ada:secret@127.0.0.1:3128": "no name and password",
		"http://127.0.0.1:3128": "on loopback", "http://127.0.1.1:3128": "on loopback", "http://LocalHost:3128": "on loopback", "http://[::1]:3128": "on loopback",
	} {
		err := runtrial.CheckProxy(proxy)
		if says == "" {
			require.NoError(t, err, proxy)
		} else {
			require.ErrorContains(t, err, says, proxy)
			require.NotContains(t, err.Error(), "secret")
		}
	}
}
