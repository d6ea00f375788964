package api

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/export"
)

const (
	exportRows   = 500    // trials of a page that is read at once
	exportPoints = 10_000 // metric points of one
	exportBuffer = 64 << 10
)

// exportSweep is GET /sweeps/{id}/export. It returns an error as long as nothing
// was sent: it reads the first page before it sends the status.
func (s *Server) exportSweep(c *gin.Context) error {
	ctx := c.Request.Context()

	sweep, err := s.sweep(ctx, c.Param("id"))
	if err != nil {
		return err
	}

	done, err := s.openStream(ctx)
	if err != nil {
		return err
	}
	defer done()

	what := openapi.ExportTable(cmp.Or(c.Query("what"), string(openapi.ExportTrials)))

	filter, err := exportFilter(c, what)
	if err != nil {
		return err
	}

	t := s.trialTable(sweep, filter)
	if what == openapi.ExportMetrics {
		t = s.metricTable(sweep.ID)
	}

	if err := t.read(ctx); err != nil {
		return err
	}

	s.sendExport(c.Writer, c.Request, export.Format(cmp.Or(c.Query("format"), string(export.CSV))), what, t)

	return nil
}

// sendExport sends a table whose first page has been read. It breaks the connection when a
// later page fails: the caller must not take a part for the whole.
func (s *Server) sendExport(w http.ResponseWriter, r *http.Request, format export.Format, what openapi.ExportTable, t *table) {
	name := fmt.Sprintf("berth-%s-%s.%s", t.sweepID[:8], what, format)

	header := w.Header()
	header.Set("Content-Type", format.MediaType())
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // lets the client tell a cut answer from none

	if err := s.writeExport(r.Context(), patientWriter{w}, format, t); err != nil {
		if r.Context().Err() == nil {
			s.log.Error("exporting a sweep", "sweep_id", t.sweepID, "what", what, "format", format, "error", err)
		}

		panic(http.ErrAbortHandler)
	}
}

// exportFilter reads the filter of trials; the API's description has checked the
// form of each parameter. Errors: invalid.
func exportFilter(c *gin.Context, what openapi.ExportTable) (berth.TrialFilter, error) {
	var (
		filter berth.TrialFilter
		bounds = map[string]**float64{"value_min": &filter.ValueMin, "value_max": &filter.ValueMax}
	)

	for name, bound := range bounds {
		text := c.Query(name)
		if text == "" {
			continue
		}

		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return filter, badParameter(name, "send a number; leave the parameter out for no bound")
		}

		*bound = &value
	}

	if states := c.Query("state"); states != "" {
		filter.States = as[berth.TrialState](strings.Split(states, ","))
	}

	filter.Stage = c.Query("stage")

	if what == openapi.ExportMetrics {
		for _, name := range []string{"state", "value_min", "value_max", "stage"} {
			if c.Query(name) != "" {
				return filter, badParameter(name, "leave it out: it is for what=trials; of metrics all points are exported")
			}
		}
	}

	return filter, checkFilter(filter)
}

// table is an exported table, read page by page.
type table struct {
	sweepID string
	columns []export.Column
	rows    []export.Row                    // of the page that was read
	more    bool                            // there are pages behind it
	read    func(ctx context.Context) error // the next page
}

func (s *Server) trialTable(sweep berth.Sweep, filter berth.TrialFilter) *table {
	shape := export.NewTrials(sweep.Spec)
	t, after := &table{sweepID: sweep.ID, columns: shape.Columns}, 0

	t.read = func(ctx context.Context) error {
		trials, err := s.deps.Store.ExportTrials(ctx, sweep.ID, filter, after, exportRows)
		if err != nil {
			return err
		}

		t.rows, t.more = t.rows[:0], len(trials) == exportRows

		for _, trial := range trials {
			row, err := shape.Row(trial)
			if err != nil {
				return err
			}

			t.rows, after = append(t.rows, row), trial.Number
		}

		return nil
	}

	return t
}

func (s *Server) metricTable(sweepID string) *table {
	t, after := &table{sweepID: sweepID, columns: export.MetricColumns()}, berth.MetricKey{}

	t.read = func(ctx context.Context) error {
		points, next, err := s.deps.Store.ExportMetrics(ctx, sweepID, after, exportPoints)
		if err != nil {
			return err
		}

		t.rows, t.more = t.rows[:0], next != nil

		for _, p := range points {
			t.rows = append(t.rows, export.MetricRow(p))
		}

		if next != nil {
			after = *next
		}

		return nil
	}

	return t
}

// writeExport writes the pages of a table; its first page has been read.
func (s *Server) writeExport(ctx context.Context, to io.Writer, format export.Format, t *table) error {
	buffer := bufio.NewWriterSize(to, exportBuffer)

	out, err := export.NewWriter(format, buffer, t.columns)
	if err != nil {
		return err
	}

	for {
		for _, row := range t.rows {
			if err := out.Write(row); err != nil {
				return err
			}
		}

		if err := out.Flush(); err != nil {
			return err
		}

		if !t.more {
			break
		}

		if err := t.read(ctx); err != nil {
			return err
		}
	}

	// A sweep deleted during the export has no more trials, and was not exported
	// whole.
	if _, err := s.deps.Store.SweepRecord(ctx, t.sweepID); err != nil {
		return err
	}

	if err := out.Close(); err != nil {
		return err
	}

	return buffer.Flush()
}

// patientWriter gives the caller time for each part.
type patientWriter struct {
	http.ResponseWriter
}

func (w patientWriter) Write(data []byte) (int, error) {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout)) // a recorder has no deadlines

	return w.ResponseWriter.Write(data)
}
