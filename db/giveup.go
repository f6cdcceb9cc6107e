package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// cancelPatience is how long a server has to end a statement that was cancelled there, before it is given
// up together with its connection: a healthy one needs milliseconds.
const cancelPatience = time.Second

type onlyReads struct{}

// OnlyReads marks a context whose statements write nothing. When it ends before one of them, the statement
// is cancelled at the server: cut off alone it would run on there, and the next ones beside it, whatever
// bound we set. What writes is never cancelled: with a synchronous standby a commit that is cancelled
// while it waits is reported as done although it is on one machine only.
func OnlyReads(ctx context.Context) context.Context { return context.WithValue(ctx, onlyReads{}, true) }

// giveUp makes what ends a statement of a connection when its context ends.
func giveUp(c *pgconn.PgConn) ctxwatch.Handler {
	return &giver{
		cut:    &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()},
		cancel: &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: cancelPatience},
	}
}

// giver cancels what only reads, and cuts everything else off.
type giver struct{ cut, cancel, used ctxwatch.Handler }

// HandleCancel implements [ctxwatch.Handler].
func (g *giver) HandleCancel(ctx context.Context) {
	g.used = g.cut
	if ctx.Value(onlyReads{}) != nil {
		g.used = g.cancel
	}
	g.used.HandleCancel(ctx)
}

// HandleUnwatchAfterCancel implements [ctxwatch.Handler].
func (g *giver) HandleUnwatchAfterCancel() { g.used.HandleUnwatchAfterCancel() }
