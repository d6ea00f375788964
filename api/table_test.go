package api

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/export"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// A failure behind the first page cuts the answer.
func TestSendExport_IsNoPart(t *testing.T) {
	t.Parallel()

	broken := &table{sweepID: apitest.NewID(1), columns: export.MetricColumns(), more: true, read: func(context.Context) error { return errors.New("no answer") }}
	s := &Server{log: slog.New(slog.DiscardHandler)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.sendExport(w, r, export.CSV, openapi.ExportMetrics, broken)
	}))
	t.Cleanup(server.Close)

	response, err := server.Client().Get(server.URL) //nolint:noctx // the server answers at once
	require.NoError(t, err)

	defer func() { _ = response.Body.Close() }()

	require.Equal(t, http.StatusOK, response.StatusCode)

	_, err = io.ReadAll(response.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
