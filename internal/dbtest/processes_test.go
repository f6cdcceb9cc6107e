package dbtest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// childVariable makes TestChild run. It stands for another test process of this checkout: it gets a
// database, prints its URL, and never ends if the variable says "hang".
const childVariable = "PAIDONCE_DBTEST_CHILD"

func TestChild(t *testing.T) {
	mode := os.Getenv(childVariable)
	if mode == "" {
		t.Skip("runs in processes that other tests start")
	}
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			url := New(t)
			if n := count(t, connect(t, url), "SELECT count(*) FROM installation"); n != 1 {
				t.Errorf("%d rows of the migrated schema, want 1", n)
			}
			_, _ = fmt.Fprintln(os.Stdout, "url", url)
			if mode == "hang" {
				select {}
			}
		})
	}
}

// child prepares a process whose shared server is below the given folder.
func child(t *testing.T, temp, mode string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.parallel=3",
		"-test.timeout=2m")
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, childVariable+"="+mode, "TEST_DATABASE_URL=")
	cmd.Stderr = os.Stderr
	return cmd
}

func TestManyProcessesAtOnce(t *testing.T) {
	t.Parallel()
	temp, err := os.MkdirTemp("", "dbtest-") //nolint:usetesting // its parents are closed to PostgreSQL's user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) }) // the server's reaper ends when its folder is gone
	if err := os.Chmod(temp, 0o711); err != nil {
		t.Fatal(err)
	}

	// On an empty folder, one process creates the cluster and one the template, and none gets in
	// another's way.
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if out, err := child(t, temp, "run").Output(); err != nil ||
				strings.Count(string(out), "url ") != 3 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()

	// A killed process leaves databases behind, which the next one drops.
	victim := child(t, temp, "hang")
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	var url string
	for lines := bufio.NewScanner(out); url == "" && lines.Scan(); {
		url, _ = strings.CutPrefix(lines.Text(), "url ")
	}
	survivor := connect(t, url)
	_ = victim.Process.Kill()
	_ = victim.Wait()
	if _, err := survivor.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("the server went with the process: %v", err)
	}
	if text, err := child(t, temp, "run").Output(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if conn, err := pgx.Connect(t.Context(), url); err == nil {
		_ = conn.Close(t.Context())
		t.Error("the database of a killed process is still there")
	}
	waitForReaper(t, temp)
}

// waitForReaper waits until neither the server below the folder nor its reaper runs.
func waitForReaper(t *testing.T, temp string) {
	t.Helper()
	if testing.Short() {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), sharedIdle+20*time.Second)
	defer cancel()
	for {
		left, err := filepath.Glob(filepath.Join(temp, "paidonce-test-*", "data*",
			"postmaster.pid"))
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("still running: %v", left)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func TestTemplateIsMadeOfTheseMigrations(t *testing.T) {
	h := shared(t)
	New(t)
	hash, err := migrationsHash()
	if err != nil || h.templateName != templatePrefix+hash {
		t.Errorf("template %s (%v), want one named after the migrations, %s", h.templateName, err,
			hash)
	}
	conn := connect(t, h.admin.String())
	if n := count(t, conn,
		"SELECT count(*) FROM pg_database WHERE datname = $1 AND NOT datallowconn",
		h.templateName); n != 1 {
		t.Error("the template takes connections")
	}
}

func TestDatabaseIsDroppedWhoeverIsConnected(t *testing.T) {
	var url string
	t.Run("leaves a connection open", func(t *testing.T) {
		url = New(t)
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn }) // never closed
	})
	if _, err := pgx.Connect(t.Context(), url); err == nil ||
		!strings.Contains(err.Error(), "does not exist") {
		t.Errorf("error %v, want that the database does not exist", err)
	}
}

func TestGivenServerMustBeAURL(t *testing.T) {
	for _, given := range []string{"host=127.0.0.1 dbname=x", "mysql://x/y"} {
		if _, err := openHost(t.Context(), given); err == nil ||
			!strings.Contains(err.Error(), "TEST_DATABASE_URL") {
			t.Errorf("%q: error %v, want one that names the variable", given, err)
		}
	}
}

func TestGivenServer(t *testing.T) {
	t.Parallel()
	s := StartServer(t)
	cmd := child(t, os.TempDir(), "run")
	cmd.Env = append(cmd.Env, "TEST_DATABASE_URL="+s.URL())
	out, err := cmd.Output()
	if err != nil || strings.Count(string(out), "url ") != 3 {
		t.Fatalf("%v\n%s", err, out)
	}
	server, _, _ := strings.Cut(s.URL(), "/paidonce")
	if !strings.Contains(string(out), "url "+server) {
		t.Errorf("not on the given server %s:\n%s", server, out)
	}
}
