package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/berthml/berth/api/client"
)

// callTimeout bounds one call: looking up an image may take the server 12 s.
const callTimeout = 60 * time.Second

// maxProblem bounds how much of a non-JSON answer is read.
const maxProblem = 64 << 10

// remote is the server: calls that answer, and streams that may last for days.
type remote struct {
	*client.Client

	streams *client.Client
	server  string
}

func (o *options) connect() (*remote, error) {
	server := strings.TrimSuffix(cmp.Or(o.server, o.getenv("BERTH_SERVER"), DefaultServer), "/")
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}

	if at, err := url.Parse(server); err != nil || at.Host == "" {
		return nil, exitf(ExitUsage, "--server %q is no URL; write such as %s", server, DefaultServer)
	}

	transport, err := o.transport()
	if err != nil {
		return nil, err
	}

	token := cmp.Or(o.token, o.getenv("BERTH_TOKEN"))
	authorize := client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}

		r.Header.Set("User-Agent", "berth-cli")

		return nil
	})

	calls, err := client.NewClient(server+"/api/v1", authorize, client.WithHTTPClient(&http.Client{Transport: transport, Timeout: callTimeout}))
	if err != nil {
		return nil, exitf(ExitUsage, "reading --server %q: %w", server, err)
	}

	streams, err := client.NewClient(server+"/api/v1", authorize, client.WithHTTPClient(&http.Client{Transport: transport}))

	return &remote{Client: calls, streams: streams, server: server}, err
}

// answer reads a call's result, or explains why there is none.
func answer[T any](response *http.Response, err error) (T, error) {
	var result T

	if err != nil {
		return result, unreachable(err)
	}

	defer func() { _ = response.Body.Close() }()

	if response.StatusCode >= http.StatusBadRequest {
		return result, problemIn(response)
	}

	if response.StatusCode == http.StatusNoContent {
		return result, nil
	}

	if err := json.NewDecoder(response.Body).Decode(&result); err != nil {
		return result, unreachable(err)
	}

	return result, nil
}

// problemIn reads the problem of a refused call.
func problemIn(response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxProblem))
	if err != nil {
		return unreachable(err)
	}

	if bytes.Contains(body, []byte(plainOnTLS)) {
		return exitf(ExitUsage, "the server speaks TLS there: write https:// in --server or BERTH_SERVER")
	}

	problem := &problemError{}
	if json.Unmarshal(body, &problem.Problem) != nil || problem.Detail == "" {
		problem.Status = response.StatusCode
		problem.Detail = "the server answered " + response.Status + ", and not as Berth does; is --server right?"
	}

	problem.retryAfter = retryAfter(response.Header.Get("Retry-After"))

	return problem
}

// receive writes the body of an answer to w. A full disk is no unreachable server.
func receive(response *http.Response, err error, w io.Writer) error {
	if err != nil {
		return unreachable(err)
	}

	defer func() { _ = response.Body.Close() }()

	if response.StatusCode >= http.StatusBadRequest {
		return problemIn(response)
	}

	_, err = io.Copy(w, response.Body)

	switch failed, writing := errors.AsType[*fs.PathError](err); {
	case writing:
		return exitf(ExitError, "writing what was received: %w", failed.Err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return exitf(ExitUnreachable, "the server ended its answer before all was sent; its log says why. Run the command again")
	case err != nil:
		return unreachable(err)
	default:
		return nil
	}
}

// unreachable says that there was no answer; an interrupt stays one.
func unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return exitf(ExitInterrupt, "interrupted")
	}

	if refused := refusedTLS(err); refused != nil {
		return refused
	}

	return exitf(ExitUnreachable, "no answer from the server: %w; is `berth dev` or `berth server` running? Type `berth dev` in another terminal, or say with --server where it runs", err)
}

// refusedToConnect reports whether the request never reached the server.
func refusedToConnect(err error) bool {
	var op *net.OpError

	return errors.As(err, &op) && op.Op == "dial"
}

// some is an optional parameter; the zero value is left out.
func some[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}

	return &v
}

// states is an optional filter.
func states[T ~string](words []string) *[]T {
	if len(words) == 0 {
		return nil
	}

	filter := make([]T, len(words))
	for i, word := range words {
		filter[i] = T(word)
	}

	return &filter
}

// pages reads every page of a list, or as many rows as wanted (0 = all).
func pages[T any](wanted int, page func(cursor string, limit int) (rows []T, next string, err error)) ([]T, error) {
	const most = 500

	var (
		all    = []T{} // in JSON and YAML never null
		cursor string
	)

	for {
		limit := most
		if wanted > 0 {
			limit = min(most, wanted-len(all))
		}

		rows, next, err := page(cursor, limit)
		if err != nil {
			return all, err
		}

		all = append(all, rows...)
		if next == "" || wanted > 0 && len(all) >= wanted {
			return all, nil
		}

		cursor = next
	}
}
