package db_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"paidonce/db"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]db.Failure{
		&pgconn.PgError{Code: "40001"}: db.Rerun,
		&pgconn.PgError{Code: "40P01"}: db.Rerun,
		&pgconn.PgError{Code: "23505"}: db.Permanent,
		&pgconn.PgError{Code: "22021"}: db.Permanent,
		&pgconn.PgError{Code: "42703"}: db.Permanent,
		&pgconn.PgError{Code: "P0001"}: db.Permanent,
		&pgconn.PgError{Code: "57P01"}: db.Unreachable,
		&pgconn.PgError{Code: "25P03"}: db.Unreachable,
		&pgconn.PgError{Code: "53300"}: db.Unreachable,
		&pgconn.PgError{Code: "25006"}: db.Unreachable,
		&pgconn.PgError{Code: "55P03"}: db.Unreachable,
		pgx.ErrNoRows:                  db.Permanent,
		io.ErrUnexpectedEOF:            db.Unreachable,
		context.DeadlineExceeded:       db.Unreachable,
	} {
		if got := db.Classify(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}

// Only what one row's data cause, and will cause again, is an operator's to look at.
func TestByData(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		&pgconn.PgError{Code: "23505"}: true,
		&pgconn.PgError{Code: "23514"}: true,
		&pgconn.PgError{Code: "22021"}: true,
		&pgconn.PgError{Code: "44000"}: true,
		// a column that an older binary does not know
		&pgconn.PgError{Code: "23502"}:                    false,
		&pgconn.PgError{Code: "42703"}:                    false,
		&pgconn.PgError{Code: "42501"}:                    false, // a grant is missing
		&pgconn.PgError{Code: "0A000"}:                    false,
		&pgconn.PgError{Code: "P0001"}:                    false,
		&pgconn.PgError{Code: "XX000"}:                    false,
		&pgconn.PgError{Code: "40001"}:                    false,
		&pgconn.PgError{Code: "57P01"}:                    false,
		errors.Join(db.ErrUnavailable, pgx.ErrNoRows):     false,
		db.Final(db.ErrCommitUnknown):                     false,
		db.Final(errors.New("settled already")):           true,
		fmt.Errorf("the charge's row: %w", pgx.ErrNoRows): true,
		io.ErrUnexpectedEOF:                               false,
	} {
		if got := db.ByData(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
