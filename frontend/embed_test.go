package frontend_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/frontend"
)

func TestFiles_HaveAPage(t *testing.T) {
	t.Parallel()

	page, err := fs.ReadFile(frontend.Files(), "index.html")
	require.NoError(t, err)

	if frontend.Built() {
		require.Contains(t, string(page), `id="berth-config"`)
	} else {
		require.Contains(t, string(page), "built without the interface")
	}
}
