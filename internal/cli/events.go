package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth/api/client"
)

func asText(_ context.Context, r *http.Request) error {
	r.Header.Set("Accept", "text/plain")

	return nil
}

// events subscribes to changes, of one sweep or of all.
func (r *remote) events(sweepID string) *stream {
	var only *[]string
	if sweepID != "" {
		only = &[]string{sweepID}
	}

	return &stream{open: func(ctx context.Context, lastID string) (*http.Response, error) {
		return r.streams.StreamEvents(ctx, &client.StreamEventsParams{SweepID: only, LastEventID: some(lastID)})
	}}
}

// followLog prints a log to out as it grows, until the attempt has ended.
func (r *remote) followLog(ctx context.Context, cmd *cobra.Command, out io.Writer, attemptID string) error {
	s := &stream{open: func(ctx context.Context, lastID string) (*http.Response, error) {
		return r.streams.ReadLog(ctx, attemptID, &client.ReadLogParams{Follow: some(true), LastEventID: some(lastID)})
	}}
	s.lost = notice(cmd)

	return s.run(ctx, func(e serverEvent) error {
		if e.kind == "end" {
			return errStreamEnd
		}

		if e.kind != "piece" {
			return nil // such as alive
		}

		var piece client.LogPiece
		if err := json.Unmarshal([]byte(e.data), &piece); err != nil {
			return fmt.Errorf("reading the log: %w", err)
		}

		_, err := fmt.Fprint(out, piece.Text)

		return err
	})
}

// notice tells the user that the connection was lost, at most once a minute.
func notice(cmd *cobra.Command) func(error) {
	told := time.Time{}

	return func(err error) {
		if time.Since(told) > time.Minute {
			told = time.Now()

			say(cmd.ErrOrStderr(), "lost the server (%v); trying again, what runs goes on\n", err)
		}
	}
}

func (o *options) eventsCommand() *cobra.Command {
	var sweepID string

	cmd := o.verb("events", "Follow what changes, one line or JSON object per event, until interrupted", cobra.NoArgs,
		func(cmd *cobra.Command, to *remote, _ []string) error {
			s := to.events(sweepID)
			s.lost = notice(cmd)

			return s.run(cmd.Context(), func(e serverEvent) error {
				if e.kind == "reset" {
					say(cmd.ErrOrStderr(), "some events were missed: they are not kept that long\n")

					return nil
				}

				if e.kind != "change" {
					return nil // such as alive
				}

				if o.output == formatJSON {
					_, err := fmt.Fprintln(cmd.OutOrStdout(), e.data)

					return err
				}

				var event client.Event
				if err := json.Unmarshal([]byte(e.data), &event); err != nil {
					return fmt.Errorf("reading an event: %w", err)
				}

				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s  %-18s %s  %s  %s\n", event.CreatedAt.Local().Format(time.TimeOnly),
					event.Kind, cmp.Or(short(event.SweepID), none), event.Subject, event.Data)

				return err
			})
		})
	cmd.Flags().StringVar(&sweepID, "sweep", "", "only events of this sweep")

	return cmd
}
