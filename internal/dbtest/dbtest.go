// Package dbtest gives every test its own PostgreSQL database: New returns a copy of the migrated
// schema, NewEmpty one without tables, and StartServer a whole server that may be killed.
//
// The server is that of TEST_DATABASE_URL if it is set (its role must be allowed to create
// databases). Otherwise all test processes of this checkout share an embedded one (package devpg).
//
// TEST_ISOLATION, such as serializable, sets the isolation of transactions that do not ask for one:
// some operators set it for a whole server.
//
// The server is that of TEST_DATABASE_URL when it is set (its role must be allowed to create
// databases), else an embedded one (package devpg) that all test processes of this checkout share.
//
// TEST_ISOLATION, such as serializable, is the isolation that transactions have which ask for none:
// some operators set it for a whole server.
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

// timeout bounds each step here. The slowest, the first start on a machine without PostgreSQL,
// downloads 30 MB.
const timeout = 5 * time.Minute

// New returns the URL of a new database with the migrated schema. It is dropped when the test ends,
// even if somebody is connected.
func New(t testing.TB) string {
	t.Helper()
	h := shared(t)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	template, err := h.template(ctx)
	if err != nil {
		t.Fatalf("dbtest: making the template database: %v", err)
	}
	return h.create(t, template)
}

// NewEmpty returns the URL of a new database without a schema. It is dropped when the test ends,
// even if somebody is connected.
func NewEmpty(t testing.TB) string {
	t.Helper()
	return shared(t).create(t, "")
}

// notPlain matches what may not be in a database's name, so that the name needs no quotes.
var notPlain = regexp.MustCompile(`[^a-z0-9]+`)

// create creates a database for the test. Its name says which process and which test it belongs to.
func (h *host) create(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("%s%s_%d_%s", testPrefix, h.token, h.count.Add(1),
		notPlain.ReplaceAllString(strings.ToLower(t.Name()), "_"))
	const longest = 63 // bytes in a name; PostgreSQL cuts off what is longer, the URL does not
	name = name[:min(len(name), longest)]
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := h.createDatabase(ctx, name, template); err != nil {
		t.Fatalf("dbtest: making a database: %v", err)
	}
	if level := isolation(); level != "" {
		if err := h.exec(ctx, "ALTER DATABASE "+name+" SET default_transaction_isolation = '"+level+
			"'"); err != nil {
			t.Fatalf("dbtest: TEST_ISOLATION: %v", err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := h.exec(ctx, dropStatement(name)); err != nil {
			t.Errorf("dbtest: dropping a database: %v", err)
		}
	})
	return h.url(name)
}

// isolation is the level that TEST_ISOLATION asks for; empty means PostgreSQL's default.
func isolation() string { return strings.ReplaceAll(os.Getenv("TEST_ISOLATION"), "'", "") }
