package dbtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"paidonce/internal/devpg"
)

const (
	// testPrefix begins the name of every test's database, templatePrefix that of every template.
	// What follows up to the next underscore is the name's token.
	testPrefix     = "pdtest_"
	templatePrefix = "pdtmpl_"
	// lockClass separates our advisory locks from those of other programs on a server that we were
	// given. Any number would do.
	lockClass = 20260414
	// busyPause is how long we wait before we retry with a database that somebody is about to
	// leave.
	busyPause = 20 * time.Millisecond
)

// host is the server of this process's databases.
type host struct {
	// Set if the server is our own: its use, a lock on a file, lasts as long as this process. Nil
	// if we were given a server.
	server *devpg.Server
	admin  *url.URL // a database from which others are created and dropped
	token  string   // this process's mark in the names of its databases
	count  atomic.Int64

	// keeper is a connection that stays open as long as this process lives. It holds an advisory
	// lock on each token that this process uses. A token that nobody holds belongs to a process
	// that was killed; its databases may be dropped.
	mu     sync.Mutex
	keeper *pgx.Conn

	templateOnce sync.Once
	templateName string
	templateErr  error
}

// oneHost is opened by the first test of the process that needs a database. It is never closed,
// because a process cannot know that its last test is over. The reaper and the next process's sweep
// clean up.
var oneHost struct {
	once sync.Once
	h    *host
	err  error
}

func shared(t testing.TB) *host {
	t.Helper()
	oneHost.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		oneHost.h, oneHost.err = openHost(ctx, os.Getenv("TEST_DATABASE_URL"))
	})
	if oneHost.err != nil {
		t.Fatalf("dbtest: %v", oneHost.err)
	}
	return oneHost.h
}

func openHost(ctx context.Context, admin string) (*host, error) {
	h := &host{}
	var err error
	if admin == "" {
		if h.server, err = sharedServer(ctx); err != nil {
			return nil, err
		}
		admin = h.server.URL("postgres")
	}
	h.admin, err = url.Parse(admin)
	if err != nil || (h.admin.Scheme != "postgres" && h.admin.Scheme != "postgresql") {
		return nil, errors.New("TEST_DATABASE_URL must have the form " +
			"postgres://user:password@host:port/database")
	}
	random := make([]byte, 4) // two processes of one server get the same once in 2^32
	_, _ = rand.Read(random)  // never fails
	h.token = hex.EncodeToString(random)
	if h.keeper, err = pgx.Connect(ctx, admin); err != nil {
		return nil, err
	}
	if err := h.hold(ctx, h.token); err != nil {
		return nil, err
	}
	return h, h.sweep(ctx, testPrefix, h.token)
}

// url returns the URL of another database of the server.
func (h *host) url(database string) string {
	u := *h.admin
	u.Path = "/" + database
	return u.String()
}

// hold marks a token as in use for as long as this process lives.
func (h *host) hold(ctx context.Context, token string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.keeper.Exec(ctx, "SELECT pg_advisory_lock_shared($1, hashtext($2))", lockClass,
		token)
	return err
}

// sweep drops databases with the prefix whose token nobody holds, except those with the token
// given. The token stays locked during the drop: whoever wants to use it meanwhile waits, and then
// finds the database gone.
func (h *host) sweep(ctx context.Context, prefix, except string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	rows, err := h.keeper.Query(ctx,
		"SELECT datname FROM pg_database WHERE starts_with(datname, $1)", prefix)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		token, _, _ := strings.Cut(strings.TrimPrefix(name, prefix), "_")
		if token == except {
			continue
		}
		var free bool
		err := h.keeper.QueryRow(ctx, "SELECT pg_try_advisory_lock($1, hashtext($2))", lockClass,
			token).Scan(&free)
		if err != nil {
			return err
		}
		if !free {
			continue
		}
		_, dropErr := h.keeper.Exec(ctx, dropStatement(name))
		_, err = h.keeper.Exec(ctx, "SELECT pg_advisory_unlock($1, hashtext($2))", lockClass, token)
		if err := errors.Join(dropErr, err); err != nil {
			return err
		}
	}
	return nil
}

func dropStatement(name string) string {
	return "DROP DATABASE IF EXISTS " + pgx.Identifier{name}.Sanitize() + " WITH (FORCE)"
}

// createDatabase copies a template. An empty name stands for PostgreSQL's own empty one.
func (h *host) createDatabase(ctx context.Context, name, template string) error {
	statement := "CREATE DATABASE " + pgx.Identifier{name}.Sanitize()
	if template == "" {
		// Unlike template1, template0 never has connections; and only with it may locale and
		// encoding be chosen, so that tests sort the same on every server.
		statement += " TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
	} else {
		statement += " TEMPLATE " + pgx.Identifier{template}.Sanitize()
	}
	return h.exec(ctx, statement)
}

// exec runs one statement on its own connection, since tests create and drop databases in parallel.
// If a statement fails because somebody is about to leave the database, it is run again: the server
// process of a closed connection ends a moment later.
func (h *host) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, h.admin.String())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for {
		_, err = conn.Exec(ctx, statement)
		var pgErr *pgconn.PgError
		const objectInUse = "55006"
		if !errors.As(err, &pgErr) || pgErr.Code != objectInUse {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(busyPause):
		}
	}
}
