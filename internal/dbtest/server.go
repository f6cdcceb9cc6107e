package dbtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"paidonce/db"
	"paidonce/internal/devpg"
)

const (
	// reapVariable turns a test binary into a reaper of the folder that it names; reapRemove makes
	// it remove the folder in the end.
	reapVariable = "PAIDONCE_DBTEST_REAP"
	reapRemove   = "PAIDONCE_DBTEST_REAP_REMOVE"
	// sharedIdle is how long the shared server outlives the last test process: longer than go test
	// takes from one package's end to the next one's start, so that a run starts it once.
	sharedIdle = 10 * time.Second
)

// init turns this process into a reaper if it was started as one. No test binary knows when its
// last test is over, and a killed one cannot clean up at all. So a second process of the same
// binary waits until nobody uses the server. Package testing offers no earlier place: every package
// that uses dbtest would need a TestMain.
func init() { //tidy:init the only hook that runs before the tests in every package's test binary
	dir := os.Getenv(reapVariable)
	if dir == "" {
		return
	}
	if os.Getenv(reapRemove) != "" {
		devpg.Reap(dir, 0, true)
	} else {
		devpg.Reap(dir, sharedIdle, false)
	}
	os.Exit(0) //tidy:exit a reaper runs no tests
}

// startReaper starts a reaper for the folder; it ends at once if there is one already.
func startReaper(ctx context.Context, dir string, remove bool) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), reapVariable+"="+dir)
	if remove {
		cmd.Env = append(cmd.Env, reapRemove+"=yes")
	}
	cmd.SysProcAttr = ownSession()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the reaper: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	return nil
}

// sharedServer starts or adopts the server of all test processes of this checkout.
func sharedServer(ctx context.Context) (*devpg.Server, error) {
	root, err := checkout()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(root))
	dir := filepath.Join(os.TempDir(),
		"paidonce-test-"+strconv.Itoa(os.Getuid())+"-"+hex.EncodeToString(sum[:])[:12])
	srv, err := devpg.Start(ctx, devpg.Options{Dir: dir, Fast: true})
	if err != nil {
		return nil, err
	}
	return srv, startReaper(ctx, srv.Dir(), false)
}

// checkout returns the folder of this checkout's go.mod; tests run somewhere below it.
func checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working folder")
		}
		dir = parent
	}
}

// Server is a test's own PostgreSQL server, with durability switched on, for tests that kill it.
type Server struct {
	t   testing.TB
	dir string
	srv *devpg.Server
	url string
}

// StartServer starts a server for this test with one migrated database. Both are removed when the
// test ends.
func StartServer(t testing.TB) *Server {
	t.Helper()
	// t.TempDir does not do: when we are root, its parents are closed to the user that PostgreSQL
	// runs as.
	dir, err := os.MkdirTemp("", "paidonce-server-") //nolint:usetesting // see above
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	const passable = 0o711 // so that this user can pass
	if err := os.Chmod(dir, passable); err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	s := &Server{t: t, dir: dir}
	t.Cleanup(s.discard)
	s.Start()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if s.url, err = s.srv.EnsureDatabase(ctx, "paidonce"); err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	if err := db.Migrate(ctx, s.url, db.MigrateOptions{}); err != nil {
		t.Fatalf("dbtest: migrating: %v", err)
	}
	if level := isolation(); level != "" {
		if err := s.set(ctx, "default_transaction_isolation", level); err != nil {
			t.Fatalf("dbtest: TEST_ISOLATION: %v", err)
		}
	}
	return s
}

// set changes a setting of the whole server, including the databases that tests copy.
func (s *Server) set(ctx context.Context, name, value string) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "ALTER SYSTEM SET "+name+" = '"+value+"'"); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "SELECT pg_reload_conf()")
	return err
}

// URL returns the address of the server's migrated database. It stays the same over Kill, Stop and
// Start.
func (s *Server) URL() string { return s.url }

// Kill kills all processes of the server at once, as a power cut would: only what was committed is
// there after Start.
func (s *Server) Kill() {
	s.t.Helper()
	if err := s.srv.Kill(); err != nil {
		s.t.Fatalf("dbtest: killing the server: %v", err)
	}
}

// Start starts the server after Kill or Stop, on the same port and data, and returns when it
// accepts connections.
func (s *Server) Start() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var err error
	if s.srv != nil {
		err = s.srv.Restart(ctx)
	} else if s.srv, err = devpg.Start(ctx, devpg.Options{Dir: s.dir}); err == nil {
		err = startReaper(ctx, s.srv.Dir(), true)
	}
	if err != nil {
		s.t.Fatalf("dbtest: starting the server: %v", err)
	}
	if s.url != "" && s.srv.URL("paidonce") != s.url {
		s.t.Fatalf("dbtest: the port of %s was taken while the server was down", s.url)
	}
}

// Stop shuts the server down in order, if it is running. Start may follow.
func (s *Server) Stop() {
	s.t.Helper()
	if err := s.srv.Halt(); err != nil {
		s.t.Fatalf("dbtest: stopping the server: %v", err)
	}
}

// discard ends the server and removes its folder.
func (s *Server) discard() {
	folders := []string{s.dir}
	if s.srv != nil {
		s.srv.Stop()
		// The folder is another one if the server's user could not reach ours.
		folders = append(folders, s.srv.Dir())
	}
	for _, dir := range folders {
		if err := os.RemoveAll(dir); err != nil {
			s.t.Errorf("dbtest: %v", err)
		}
	}
}
