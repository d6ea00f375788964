package backends

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	temporallog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
)

func TestSDKLog(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer

	log := temporallog.With(newSDKLog(slog.New(slog.NewTextHandler(&out, nil))), "Attempt", 1)
	log.Error("Activity error.", "Error", temporal.NewCanceledError())
	require.Empty(t, out.String())

	log.Error("Activity error.", "Error", errors.New("broken"))
	require.Contains(t, out.String(), "level=ERROR")
	require.Contains(t, out.String(), "Attempt=1 Error=broken")
}
