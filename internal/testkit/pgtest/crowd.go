package pgtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// Crowd holds all connections of a server, and takes each free one, as a storm
// of other clients would.
type Crowd struct {
	url  string
	stop context.CancelFunc
	done sync.WaitGroup

	mu    sync.Mutex
	conns []*pgx.Conn
}

// Gather takes every connection, ends all others, and takes those, too. Leave
// releases them.
func Gather(ctx context.Context, url string) (*Crowd, error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	c := &Crowd{url: url, stop: stop}

	if err := c.take(ctx); err != nil {
		c.Leave()

		return nil, err
	}

	if _, err := c.conns[0].Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE backend_type = 'client backend' AND application_name = 'berth'`); err != nil {
		c.Leave()

		return nil, fmt.Errorf("ending the connections of others: %w", err)
	}

	c.done.Go(func() {
		for c.take(ctx) == nil {
			select {
			case <-time.After(crowdEvery):
			case <-ctx.Done():
				return
			}
		}
	})

	return c, nil
}

// take connects until the server has no more.
func (c *Crowd) take(ctx context.Context) error {
	for {
		conn, err := pgx.Connect(ctx, c.url)

		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code == codeTooManyConnections {
			return nil
		}

		if err != nil {
			return fmt.Errorf("taking a connection: %w", err)
		}

		c.mu.Lock()
		c.conns = append(c.conns, conn)
		c.mu.Unlock()
	}
}

// Size is how many connections the crowd holds.
func (c *Crowd) Size() int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return len(c.conns)
}

// Leave lets all connections go.
func (c *Crowd) Leave() {
	c.stop()
	c.done.Wait()

	for _, conn := range c.conns {
		_ = conn.Close(context.Background())
	}

	c.conns = nil
}
