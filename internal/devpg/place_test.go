//go:build linux || darwin

package devpg

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asRoot returns the account that stands in for root, or skips the test.
func asRoot(t *testing.T) *account {
	t.Helper()
	acct, err := unprivileged(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if acct == nil {
		t.Skip("needs root")
	}
	return acct
}

func TestRunsWithoutRoot(t *testing.T) {
	t.Parallel()
	acct := asRoot(t) // without root, all other tests show it
	// The test binary lies in a folder that other users cannot enter.
	public := folder(t)
	binary := filepath.Join(public, "devpg.test")
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, text, 0o755); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(public, "own")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := acct.give(dir); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary)
	_, url, say := helperOf(t, cmd, dir, acct)
	exec1(t, url, "SELECT 1")
	if got := say(); got != "stopped" {
		t.Error(got)
	}
}

func TestFolderThatTheUserCannotReach(t *testing.T) {
	t.Parallel()
	asRoot(t)
	closed := folder(t)
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, ".paidonce")
	s := start(t, Options{Dir: dir, Fast: true})
	t.Cleanup(func() { s.Stop(); _ = os.RemoveAll(s.Dir()) })
	if !strings.HasPrefix(s.Dir(), fallbackParent) {
		t.Fatalf("in %s, want it below %s", s.Dir(), fallbackParent)
	}
	note, err := os.ReadFile(filepath.Join(dir, pointerFile))
	if err != nil || strings.TrimSpace(string(note)) != s.Dir() {
		t.Errorf("the note says %q (%v), want %s", note, err, s.Dir())
	}
	exec1(t, s.URL("postgres"), "SELECT 1")
	if again := start(t, Options{Dir: dir, Fast: true}); again.Dir() != s.Dir() || !again.adopted {
		t.Errorf("the second time in %s, adopted %t", again.Dir(), again.adopted)
	}
}

func TestFolderThatSomebodyElsePrepared(t *testing.T) {
	t.Parallel()
	parent := folder(t)
	if err := os.Chmod(parent, 0o777); err != nil {
		t.Fatal(err)
	}
	target := folder(t)
	link, open := filepath.Join(parent, "link"), filepath.Join(parent, "open")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	bad := []string{link, open}
	if os.Geteuid() == 0 {
		foreign := filepath.Join(parent, "foreign")
		if err := os.Mkdir(foreign, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := asRoot(t).give(foreign); err != nil {
			t.Fatal(err)
		}
		bad = append(bad, foreign)
	}
	for _, dir := range bad {
		if got, err := makeFolder(dir); err == nil {
			t.Errorf("%s was taken as %s", dir, got)
		}
	}
	if _, err := makeFolder(filepath.Join(parent, "new")); err != nil {
		t.Error(err)
	}
}

func TestPgBindirIsTheOnlyPlace(t *testing.T) {
	dir := folder(t)
	t.Setenv("PG_BINDIR", dir)
	if _, err := Start(t.Context(), Options{Dir: folder(t)}); err == nil ||
		!strings.Contains(err.Error(), "PG_BINDIR") {
		t.Errorf("error %v, want one that names PG_BINDIR", err)
	}
	fakePrograms(t, dir, "postgres (PostgreSQL) 13.22")
	if _, err := Start(t.Context(), Options{Dir: folder(t)}); err == nil ||
		!strings.Contains(err.Error(), "at least 14") {
		t.Errorf("error %v, want one that says which version is needed", err)
	}
	fakePrograms(t, dir, "postgres (PostgreSQL) 19beta1")
	if p, err := findPrograms(t.Context(), nil); err != nil || len(p) != 1 || p[0].major != 19 {
		t.Errorf("%v, %v; want version 19", p, err)
	}
}

func TestDataDecideTheVersion(t *testing.T) {
	old, recent := folder(t), folder(t)
	fakePrograms(t, old, "postgres (PostgreSQL) 20.1")
	fakePrograms(t, recent, "postgres (PostgreSQL) 21.0")
	t.Setenv("PATH", old+":"+recent+":"+os.Getenv("PATH"))
	dir := folder(t)
	for _, step := range []struct {
		data string
		want int
	}{{"", 21}, {"data20", 20}} {
		if step.data != "" {
			if err := os.Mkdir(filepath.Join(dir, step.data), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		p, err := choosePrograms(t.Context(), dir, nil, Options{})
		if err != nil || p.major != step.want {
			t.Errorf("with %q: version %d (%v), want %d", step.data, p.major, err, step.want)
		}
	}
}

func fakePrograms(t *testing.T, dir, version string) {
	t.Helper()
	for _, name := range []string{"postgres", "initdb"} {
		script := "#!/bin/sh\necho '" + version + "'\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDownload serves an archive in the layout of the library's repository, and sees it unpacked
// where every user can run it.
func TestDownload(t *testing.T) {
	xz, err := exec.LookPath("xz")
	if err != nil {
		t.Skip("needs xz")
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	script := []byte("#!/bin/sh\necho 'postgres (PostgreSQL) 18.3'\n")
	for _, name := range []string{"bin/postgres", "bin/initdb", "bin/pg_ctl"} {
		if name == "bin/initdb" {
			// as the real one when it reads of an encoding that does not exist
			script = []byte("#!/bin/sh\nexit 1\n")
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o700, Size: int64(len(script)),
			Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(script)
	}
	_ = w.Close()
	pack := exec.CommandContext(t.Context(), xz, "-c", "--check=crc32")
	pack.Stdin = &archive
	packed, err := pack.Output()
	if err != nil {
		t.Fatal(err)
	}
	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	f, _ := z.Create("postgres.txz")
	_, _ = f.Write(packed)
	_ = z.Close()
	asked := 0
	repository := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, ".jar") {
			http.NotFound(w, r)
			return
		}
		asked++
		_, _ = w.Write(jar.Bytes())
	}))
	defer repository.Close()

	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir()) // the cache's place on macOS
	dir := folder(t)
	opt := Options{Dir: dir, repository: repository.URL, onlyDownload: true}
	acct, err := unprivileged(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time nothing is left to do
		p, err := choosePrograms(t.Context(), dir, acct, opt)
		if err != nil || p.major != 18 || filepath.Dir(filepath.Dir(p.dir)) != dir {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	if asked != 1 {
		t.Errorf("downloaded %d times", asked)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "fetch-*"))
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	opt.repository = "http://127.0.0.1:1"
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	if _, err := choosePrograms(context.Background(), folder(t), acct, opt); err == nil ||
		!strings.Contains(err.Error(), "PG_BINDIR") {
		t.Errorf("error %v, want one that tells what to do", err)
	}
}
