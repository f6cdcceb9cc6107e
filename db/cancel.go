package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// cancelLimit is how long the server has to end a statement that was cancelled, before the
// connection is closed. A healthy server needs milliseconds.
const cancelLimit = time.Second

type onlyReadsKey struct{}

// OnlyReads marks a context whose statements write nothing. When the context ends before one of
// them does, the statement is cancelled at the server. If only the connection were closed, the
// statement would run on there, beside those that follow it, whatever their bound. Statements that
// write are never cancelled: with a synchronous standby, a commit that is cancelled while it waits
// is reported as done although it is on one machine only.
func OnlyReads(ctx context.Context) context.Context {
	return context.WithValue(ctx, onlyReadsKey{}, true)
}

// newContextWatcher returns the handler that ends a connection's statement when its context ends.
func newContextWatcher(c *pgconn.PgConn) ctxwatch.Handler {
	return &contextWatcher{
		cut:    &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()},
		cancel: &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: cancelLimit},
	}
}

// contextWatcher cancels statements that only read, and closes the connection of all others.
type contextWatcher struct{ cut, cancel, used ctxwatch.Handler }

// HandleCancel implements [ctxwatch.Handler].
func (g *contextWatcher) HandleCancel(ctx context.Context) {
	g.used = g.cut
	if ctx.Value(onlyReadsKey{}) != nil {
		g.used = g.cancel
	}
	g.used.HandleCancel(ctx)
}

// HandleUnwatchAfterCancel implements [ctxwatch.Handler].
func (g *contextWatcher) HandleUnwatchAfterCancel() { g.used.HandleUnwatchAfterCancel() }
