package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"paidonce/internal/dbtest"
	"paidonce/internal/race"
)

// binary is the product, built for this run, and plain the same without the race detector, whose
// programs take long to begin. Commands that end by themselves are run from it.
var binary, plain string

// parallelTests: the tests wait for providers and leases most of their time, so there are more of
// them than processors.
const parallelTests = 8

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(parallelTests))
	}
	dir, err := os.MkdirTemp("", "paidonce-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err = build(dir); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer host.discard()
	return m.Run()
}

// build makes the binaries. Any user may run them: dev is tried as another one.
func build(dir string) (err error) {
	if err = os.Chmod(dir, 0o755); err != nil {
		return err
	}
	const source = "../cmd/paidonce"
	if binary, err = buildProgram(dir, "paidonce", source); err != nil {
		return err
	}
	if plain = binary; race.Enabled {
		plain = filepath.Join(dir, "plain", "paidonce")
		err = goBuild(plain, source)
	}
	return err
}

// buildProgram makes a program, with the race detector when the tests run with it.
func buildProgram(dir, name, source string) (string, error) {
	file := filepath.Join(dir, name)
	var flags []string
	if race.Enabled {
		flags = append(flags, "-race")
	}
	if err := goBuild(file, source, flags...); err != nil {
		return "", err
	}
	return file, os.Chmod(file, 0o755)
}

func goBuild(file, source string, flags ...string) error {
	args := append([]string{"build", "-o", file}, append(flags, source)...)
	out, err := exec.CommandContext(context.Background(), "go", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("building %s: %w\n%s", source, err, out)
	}
	return nil
}

// databases is a durable server (`serve` refuses any other) that all tests of the run share.
type databases struct {
	once  sync.Once
	tb    runTB
	srv   *dbtest.Server
	mu    sync.Mutex // one CREATE DATABASE at a time: each waits for a copy of the template
	count int
}

var host databases

// runTB lets a server live as long as the run, where package testing has only tests.
type runTB struct {
	testing.TB
	cleanups []func()
}

func (*runTB) Helper()                   {}
func (r *runTB) Cleanup(fn func())       { r.cleanups = append(r.cleanups, fn) }
func (*runTB) Errorf(f string, a ...any) { fmt.Fprintf(os.Stderr, f+"\n", a...) }
func (*runTB) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

func (d *databases) server() *dbtest.Server {
	d.once.Do(func() { d.srv = dbtest.StartServer(&d.tb) })
	return d.srv
}

func (d *databases) discard() {
	for _, fn := range d.tb.cleanups {
		fn()
	}
}

// create makes a database: a copy of the migrated one, or an empty one. It goes with the server.
func (d *databases) create(t testing.TB, migrated bool) string {
	t.Helper()
	srv := d.server()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count++
	name, template := fmt.Sprintf("e2e_%d", d.count), "template0"
	if migrated {
		template = "paidonce"
	}
	execSQL(t, withDatabase(t, srv.URL(), "postgres"),
		"CREATE DATABASE "+name+" TEMPLATE "+template)
	return withDatabase(t, srv.URL(), name)
}

func withDatabase(t testing.TB, address, name string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// execSQL runs statements on a connection of their own.
func execSQL(t testing.TB, address string, statements ...string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// querySQL reads one value.
func querySQL[T any](t testing.TB, address, query string, args ...any) (v T) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := conn.QueryRow(ctx, query, args...).Scan(&v); err != nil &&
		!errors.Is(err, pgx.ErrNoRows) {
		t.Fatalf("%s: got %v, want pgx.ErrNoRows", query, err)
	}
	return v
}
