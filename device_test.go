package berth_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func TestDevice_Refusal(t *testing.T) {
	t.Parallel()

	at := new(time.Unix(1e9, 0))

	for want, d := range map[string]berth.Device{
		"":     {ID: "GPU-1"},
		"lost": {ID: "GPU-1", Problem: "lost"},
		"cordoned by a person; `berth device ready GPU-1` lets it take trials again":                   {ID: "GPU-1", CordonedAt: at},
		"cordoned by a person (its fan is loud); `berth device ready GPU-1` lets it take trials again": {ID: "GPU-1", CordonedAt: at, CordonReason: "its fan is loud"},
		"lost; also cordoned by a person (its fan is loud)":                                            {ID: "GPU-1", CordonedAt: at, CordonReason: "its fan is loud", Problem: "lost"},
	} {
		require.Equal(t, want, d.Refusal())
	}
}
