//go:build linux || darwin

package devpg

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// helperFolder makes the test binary a process that starts the folder's server, says so, and stops
// when its input ends.
const helperFolder = "DEVPG_TEST_HELPER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperFolder); dir != "" {
		help(dir)
		return
	}
	os.Exit(m.Run())
}

func help(dir string) {
	s, err := Start(context.Background(), Options{Dir: dir})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(s.URL("postgres"))
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	s.Stop()
	fmt.Println("stopped")
}

// helper starts a helper process and returns it with the URL that it told. When asked, it runs as
// another user.
func helper(t *testing.T, dir string, as *account) (cmd *exec.Cmd, url string, say func() string) {
	t.Helper()
	return helperOf(t, exec.CommandContext(t.Context(), os.Args[0]), dir, as)
}

func helperOf(
	t *testing.T, cmd *exec.Cmd, dir string, as *account,
) (_ *exec.Cmd, url string, say func() string) {
	t.Helper()
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), helperFolder+"="+dir)
	if as != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: as.uid, Gid: as.gid},
		}
	}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	line := func() string {
		text, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("helper: %v", err)
		}
		return strings.TrimSpace(text)
	}
	if url = line(); !strings.HasPrefix(url, "postgres://") {
		t.Fatalf("helper: %s", url)
	}
	return cmd, url, func() string {
		_, _ = in.Write([]byte("\n"))
		return line()
	}
}

// folder returns a new folder that the server's user can reach; t.TempDir's parents are closed to
// it when we are root.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "devpg-test-") //nolint:usetesting // its parents are closed to PostgreSQL's user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, folderMode); err != nil {
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T, opt Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// exec1 runs statements on the server's database postgres.
func exec1(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func pid(t *testing.T, s *Server) int {
	t.Helper()
	pf, ok := s.c.running()
	if !ok {
		t.Fatal("the server is not running")
	}
	return pf.pid
}

func TestDataAndPortAreKept(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	first := start(t, Options{Dir: dir})
	url, err := first.EnsureDatabase(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	exec1(t, url, "CREATE TABLE kept ()")
	p := pid(t, first)
	first.Stop()
	first.Stop() // once more does no harm
	if !gone(p) {
		t.Error("the server runs after Stop")
	}
	if _, err := os.Stat(pidFilePath(first.c.data())); err == nil {
		t.Error("postmaster.pid is there after an orderly stop")
	}
	second := start(t, Options{Dir: dir})
	if again, err := second.EnsureDatabase(t.Context(), "shop"); err != nil || again != url {
		t.Errorf("EnsureDatabase = %s, %v; want %s as before", again, err, url)
	}
	exec1(t, url, "SELECT FROM kept")
}

func TestPortIsTaken(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	first := start(t, Options{Dir: dir, Fast: true})
	first.Stop()
	taker := start(t, Options{Dir: folder(t), Fast: true})
	taken := []byte(fmt.Sprintln(taker.port))
	if err := os.WriteFile(first.c.file("port"), taken, 0o600); err != nil {
		t.Fatal(err)
	}
	second := start(t, Options{Dir: dir, Fast: true})
	if second.port == taker.port {
		t.Error("both on one port")
	}
	exec1(t, second.URL("postgres"), "SELECT 1")
}

func TestManyStartAtOnce(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	var all [4]*Server
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			var err error
			if all[i], err = Start(t.Context(), Options{Dir: dir, Fast: true}); err != nil {
				t.Error(err)
			}
		})
	}
	_, url, say := helper(t, dir, nil) // another process too
	wg.Wait()
	if t.Failed() {
		return
	}
	p := pid(t, all[0])
	for _, s := range all {
		if s.URL("postgres") != url {
			t.Errorf("%s, want the same for all: %s", s.URL("postgres"), url)
		}
		if gone(p) {
			t.Fatal("stopped while others use it")
		}
		s.Stop()
	}
	if gone(p) {
		t.Fatal("stopped while another process uses it")
	}
	if got := say(); got != "stopped" || !gone(p) {
		t.Errorf("helper said %q; server gone: %t; the last one to leave stops it", got, gone(p))
	}
}

func TestParentIsKilled(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	parent, url, _ := helper(t, dir, nil)
	exec1(t, url, "CREATE TABLE kept ()")
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	exec1(t, url, "SELECT FROM kept") // the server lives on

	s := start(t, Options{Dir: dir})
	if !s.adopted || s.URL("postgres") != url {
		t.Errorf("adopted %t, URL %s; want the running server, %s", s.adopted, s.URL("postgres"),
			url)
	}
	p := pid(t, s)
	s.Stop()
	if !gone(p) {
		t.Error("the adopted server runs after Stop")
	}
}

func TestParentAndServerAreKilled(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	parent, url, _ := helper(t, dir, nil)
	exec1(t, url, "CREATE TABLE kept ()")
	peer := start(t, Options{Dir: dir})
	p := pid(t, peer)
	_ = parent.Process.Kill()
	_ = parent.Wait()
	if err := syscall.Kill(p, syscall.SIGKILL); err != nil { // alone: its backends are still about
		t.Fatal(err)
	}
	s := start(t, Options{Dir: dir})
	if s.adopted {
		t.Error("adopted a dead server")
	}
	exec1(t, s.URL("postgres"), "SELECT FROM kept")
}

func TestFastDataAreDiscardedAfterACrash(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: folder(t), Fast: true})
	exec1(t, s.URL("postgres"), "CREATE TABLE unsynced ()")
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec1(t, s.URL("postgres"), "CREATE TABLE unsynced ()")
}

func TestStalePidFileNamesAnInnocentProcess(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Dir: folder(t)})
	exec1(t, s.URL("postgres"), "CREATE TABLE kept ()")
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	innocent := s.c.acct.command(t.Context(), "/", "sleep", "600")
	if err := innocent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = innocent.Process.Kill(); _ = innocent.Wait() })
	text, err := os.ReadFile(pidFilePath(s.c.data()))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n")
	if err := os.WriteFile(pidFilePath(s.c.data()),
		fmt.Appendf(nil, "%d\n%s", innocent.Process.Pid, rest), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Halt(); err != nil { // must not signal it
		t.Fatal(err)
	}
	if err := s.Kill(); err == nil {
		t.Fatal("Kill believed the stale file")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec1(t, s.URL("postgres"), "SELECT FROM kept")
	s.Stop()
	if gone(innocent.Process.Pid) {
		t.Error("an innocent process was killed")
	}
}

func TestInterruptedInitdb(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // cancel as soon as initdb has begun to write
		for ctx.Err() == nil {
			if found, _ := filepath.Glob(filepath.Join(dir, "unfinished*", "PG_VERSION")); len(found) > 0 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if _, err := Start(ctx, Options{Dir: dir}); err == nil {
		t.Skip("initdb was faster")
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "unfinished*")); len(found) != 1 {
		t.Fatalf("nothing was interrupted: %v", found)
	}
	exec1(t, start(t, Options{Dir: dir}).URL("postgres"), "SELECT 1")
	if found, _ := filepath.Glob(filepath.Join(dir, "unfinished*")); len(found) != 0 {
		t.Errorf("left behind: %v", found)
	}
}

func TestReap(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := start(t, Options{Dir: dir, Fast: true})
	p := pid(t, s)
	done := make(chan struct{})
	go func() { Reap(dir, 100*time.Millisecond, true); close(done) }()
	select {
	case <-done:
		t.Fatal("reaped while in use")
	case <-time.After(500 * time.Millisecond):
	}
	Reap(dir, 0, true) // a second one returns at once
	s.users.unlock()   // as the kernel does for a process that was killed
	<-done
	if !gone(p) {
		t.Error("the server outlived its reaper")
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder is still there")
	}
}

func TestCtrlCDoesNotReachTheServer(t *testing.T) {
	t.Parallel()
	s := start(t, Options{
		Dir: folder(t), Fast: true, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	ours, err1 := syscall.Getpgid(os.Getpid())
	its, err2 := syscall.Getpgid(pid(t, s))
	if err1 != nil || err2 != nil || ours == its {
		t.Errorf("process groups %d and %d (%v, %v), want different ones", ours, its, err1, err2)
	}
}
