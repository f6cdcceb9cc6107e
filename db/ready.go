package db

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// CheckStart reports whether this binary may begin to work on the database: it answers, its version
// and encoding are supported, and its schema is the one that this binary was built for. The error
// is a sentence that says what is missing and what to do.
//
// A schema that is newer is refused here and not by [Ready]: migrations are written for the binary
// before them, which runs on while instances are replaced one by one. A binary that starts on a
// schema which it does not know may be any number of versions behind.
func CheckStart(ctx context.Context, pool *pgxpool.Pool) error {
	if err := checkServer(ctx, pool); err != nil {
		return err
	}
	version, err := schemaVersion(ctx, pool)
	if err != nil {
		return err
	}
	if latest := LatestVersion(); version > latest {
		return newerSchema(version, latest)
	}
	return nil
}

func newerSchema(version, latest int64) error {
	return fmt.Errorf("the schema is at version %d, and this binary knows versions up to %d: "+
		"install the version of Paidonce that migrated it, or a newer one", version, latest)
}

// Ready reports whether charges can be made at this moment: the database answers, takes writes, has
// all tables that this binary needs, and its role may write them. The error says what is missing.
func Ready(ctx context.Context, pool *pgxpool.Pool) error {
	if err := Writable(ctx, pool); err != nil {
		return err
	}
	if _, err := schemaVersion(ctx, pool); err != nil {
		return err
	}
	return checkRights(ctx, pool)
}

// Chargeable is [Ready] without a look at the schema, for after [CheckStart].
func Chargeable(ctx context.Context, on DBTX) error {
	if err := Writable(ctx, on); err != nil {
		return err
	}
	return checkRights(ctx, on)
}

// Writable reports whether the database takes writes.
func Writable(ctx context.Context, on DBTX) error {
	var standby, readOnly bool
	err := on.QueryRow(ctx,
		`SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::boolean`).Scan(
		&standby, &readOnly)
	switch {
	case err != nil:
		return noAnswer(err)
	case standby:
		return errors.New("the database takes no writes, as it is a standby: let DATABASE_URL " +
			"lead to the primary, or promote it " +
			"(with target_session_attrs=read-write and all hosts in the URL, the one that takes " +
			"writes is found)")
	case readOnly:
		return errors.New("the database takes no writes, as default_transaction_read_only is on " +
			"for the server, the database or the role: switch it off")
	}
	return nil
}

const (
	// oldestServer is PostgreSQL 14. Older versions are not tested.
	oldestServer = 140000
	// encoding is the only one that can store every text of clients and the provider.
	encoding = "UTF8"
)

// checkServer reports whether the server's version and the database's encoding are supported.
func checkServer(ctx context.Context, on DBTX) error {
	var version int
	var number, has string
	err := on.QueryRow(ctx,
		`SELECT current_setting('server_version_num')::integer, current_setting('server_version'), current_setting('server_encoding')`).
		Scan(&version, &number, &has)
	if err != nil {
		return noAnswer(err)
	}
	return judgeServer(version, number, has)
}

func judgeServer(version int, number, has string) error {
	switch {
	case version < oldestServer:
		return fmt.Errorf("the database server is PostgreSQL %s: 14 or newer is needed", number)
	case has != encoding:
		return fmt.Errorf("the database has the encoding %s: %s is needed, so make another with "+
			"CREATE DATABASE … ENCODING '%s' TEMPLATE template0", has, encoding, encoding)
	}
	return nil
}

// noAnswer returns the error for a database that did not answer.
func noAnswer(err error) error {
	if sessionLost(err) {
		return fmt.Errorf("DATABASE_URL leads to a pooler that changes connections between "+
			"transactions, such as PgBouncer in transaction mode: "+
			"add default_query_exec_mode=cache_describe to it: %w", err)
	}
	return fmt.Errorf("the database does not answer: %w", err)
}

// schemaVersion is the version of the schema, which is not below the one of this binary.
func schemaVersion(ctx context.Context, pool *pgxpool.Pool) (version int64, err error) {
	err = pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		var backend uint32
		err := conn.QueryRow(ctx,
			`SELECT coalesce(max(version_id), 0), pg_backend_pid() FROM `+versionTable+` WHERE is_applied`).Scan(
			&version, &backend)
		// A pooler stands between, and told us a number of its own.
		if err == nil && backend != conn.Conn().PgConn().PID() {
			return checkSessions(ctx, conn)
		}
		return err
	})
	switch {
	case IsUndefinedTable(err):
		return 0, noSchema(ctx, pool)
	case isForbidden(err):
		return 0, fmt.Errorf(
			"the role of DATABASE_URL may not read %s: GRANT SELECT on it, or use the role that ran `paidonce migrate`",
			versionTable)
	case err != nil:
		return 0, noAnswer(err)
	}
	if latest := LatestVersion(); version < latest {
		return 0, fmt.Errorf(
			"the schema is at version %d, this binary needs %d: run `paidonce migrate`", version,
			latest)
	}
	return version, nil
}

// noSchema returns why the tables cannot be found.
func noSchema(ctx context.Context, on DBTX) error {
	var usable bool
	if err := on.QueryRow(ctx, `SELECT current_schema() IS NOT NULL`).Scan(&usable); err != nil {
		return noAnswer(err)
	}
	if !usable {
		return errors.New("the role of DATABASE_URL may use no schema of its search_path: GRANT " +
			"USAGE ON SCHEMA … to it, or set its search_path")
	}
	return errors.New("the schema is missing: run `paidonce migrate`")
}

func isForbidden(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "42501"
}

// rights are the privileges that a charge needs, from reading the API key to storing the answer and
// the event, and those that a server needs before it claims anything: to know its account at the
// provider, and to confirm the history of the database. A test makes charges with these and no
// others.
const rights = `
	('api_keys', 'SELECT'), ('installation', 'SELECT'), ('charges', 'SELECT'), ('charges', 'INSERT'), ('charges', 'UPDATE'),
	('idempotency_keys', 'SELECT'), ('idempotency_keys', 'INSERT'), ('idempotency_keys', 'UPDATE'), ('idempotency_keys', 'DELETE'),
	('operation_log', 'SELECT'), ('operation_log', 'INSERT'), ('outbox', 'INSERT'), ('outbox', 'SELECT'), ('outbox_counter', 'SELECT'), ('outbox_counter', 'UPDATE'), ('recovered_keys', 'SELECT'), ('refunds', 'SELECT'),
	('accounts', 'SELECT'), ('provider_accounts', 'SELECT'), ('history_mark', 'SELECT'), ('history_mark', 'UPDATE'),
	('servers', 'SELECT'), ('servers', 'INSERT'), ('servers', 'UPDATE'), ('servers', 'DELETE')`

// checkRights reports whether the role may do to each table what a charge does to it.
func checkRights(ctx context.Context, on DBTX) error {
	var role string
	var missing *string
	err := on.QueryRow(ctx, `SELECT current_user, string_agg(n.privilege || ' on ' || n.name, ', ' ORDER BY n.name, n.privilege)
		FILTER (WHERE NOT coalesce(has_table_privilege(to_regclass(n.name), n.privilege), false)) FROM (VALUES `+rights+`) AS n (name, privilege)`).Scan(&role, &missing)
	switch {
	case err != nil:
		return noAnswer(err)
	case missing != nil:
		return fmt.Errorf(
			"the role %q may not %s, without which no charge can be made: GRANT that to it, or use the role that ran `paidonce migrate`",
			role, *missing)
	}
	return nil
}
