package pgtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// codeTooManyConnections is PostgreSQL's "sorry, too many clients already"
// (its manual, appendix A).
const codeTooManyConnections = "53300"

// crowdEvery is how often a crowd looks for a free connection: sooner than any
// other client comes back for one.
const crowdEvery = 10 * time.Millisecond

// Gather takes all connections of a server, as a storm of other clients would: it
// ends Berth's, returns once it has least connections, and takes each that is free
// until leave is called.
func Gather(test context.Context, url string, least int) (leave func(), err error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(test))

	var conns []*pgx.Conn

	take := func() error { // connects until the server has no more
		for {
			conn, err := pgx.Connect(ctx, url)

			var refused *pgconn.PgError
			if errors.As(err, &refused) && refused.Code == codeTooManyConnections {
				return nil
			}

			if err != nil {
				return fmt.Errorf("taking a connection: %w", err)
			}

			conns = append(conns, conn)
		}
	}

	done := make(chan struct{})
	leave = func() {
		stop()
		<-done

		for _, conn := range conns {
			_ = conn.Close(context.Background())
		}
	}

	if err = take(); err == nil {
		_, err = conns[0].Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE backend_type = 'client backend' AND application_name = 'berth'`)
	}

	for err == nil && len(conns) < least {
		if err = take(); err == nil {
			err = context.Cause(test)
		}
	}

	if err != nil {
		close(done)
		leave()

		return nil, err
	}

	go func() { // ends with leave
		defer close(done)

		for take() == nil && ctx.Err() == nil {
			time.Sleep(crowdEvery)
		}
	}()

	return leave, nil
}
