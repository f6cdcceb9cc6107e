// Package dbtest gives every test a PostgreSQL database of its own: New a copy of the migrated schema, NewEmpty one without
// tables, StartServer a whole server that may be killed.
//
// The server is that of TEST_DATABASE_URL when it is set (its role must be allowed to create databases), else an embedded one
// (package devpg) that all test processes of this checkout share.
//
// TEST_ISOLATION, such as serializable, is the isolation that transactions have which ask for none: some operators set it for a whole server.
package dbtest

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// patience bounds each step here. The slowest, the first start on a machine without PostgreSQL, downloads 30 MB.
const patience = 5 * time.Minute

// New returns the URL of a fresh database with the migrated schema; it is dropped when the test ends, whoever is connected.
func New(t testing.TB) string {
	t.Helper()
	h := shared(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	template, err := h.template(ctx)
	if err != nil {
		t.Fatalf("dbtest: making the template database: %v", err)
	}
	return h.create(t, template)
}

// NewEmpty returns the URL of a fresh database without schema; it is dropped when the test ends, whoever is connected.
func NewEmpty(t testing.TB) string {
	t.Helper()
	return shared(t).create(t, "")
}

// notPlain is what stays out of a database's name, so that it needs no quotes.
var notPlain = regexp.MustCompile(`[^a-z0-9]+`)

// create makes a database for the test. Its name says which process and which test it belongs to.
func (h *host) create(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("%s%s_%d_%s", testPrefix, h.token, h.count.Add(1), notPlain.ReplaceAllString(strings.ToLower(t.Name()), "_"))
	const longest = 63 // bytes in a name; PostgreSQL cuts off what is longer, the URL does not
	name = name[:min(len(name), longest)]
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := h.createDatabase(ctx, name, template); err != nil {
		t.Fatalf("dbtest: making a database: %v", err)
	}
	if level := isolation(); level != "" {
		if err := h.exec(ctx, "ALTER DATABASE "+name+" SET default_transaction_isolation = '"+level+"'"); err != nil {
			t.Fatalf("dbtest: TEST_ISOLATION: %v", err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := h.exec(ctx, dropStatement(name)); err != nil {
			t.Errorf("dbtest: dropping a database: %v", err)
		}
	})
	return h.url(name)
}

// isolation is the level that the run asks for; empty for PostgreSQL's own.
func isolation() string { return strings.ReplaceAll(os.Getenv("TEST_ISOLATION"), "'", "") }
