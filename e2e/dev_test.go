package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"paidonce/api/apitest"
)

const nobody = 65534

// devUser runs dev in an empty folder as one user.
type devUser struct {
	w          *world
	dir        string
	credential *syscall.Credential
}

// TestDev walks a newcomer's way: start, the printed lines, Ctrl-C, start again, a crash, start
// again.
func TestDev(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("the printed lines need ", tool)
		}
	}
	t.Run("as who runs the tests", func(t *testing.T) {
		t.Parallel()
		tryDev(t, nil)
	})
	t.Run("as nobody", func(t *testing.T) {
		t.Parallel()
		if os.Getuid() != 0 {
			t.Skip("only root can become somebody else")
		}
		tryDev(t, &syscall.Credential{Uid: nobody, Gid: nobody})
	})
}

func newDevUser(t *testing.T, credential *syscall.Credential) *devUser {
	t.Helper()
	// Not t.TempDir: its parents are closed to other users, of whom PostgreSQL's is one when we are
	// root.
	dir, err := os.MkdirTemp("", "paidonce-dev-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if credential != nil {
		if err := os.Chown(dir, int(credential.Uid), int(credential.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	u := &devUser{w: &world{t: t, names: map[string]int{}}, dir: dir, credential: credential}
	t.Cleanup(u.endDatabase)
	return u
}

func tryDev(t *testing.T, credential *syscall.Credential) {
	u := newDevUser(t, credential)
	first := u.start()
	key := first.await(`API key of the account dev: (sk_\w+)`)[1]
	said := first.output()
	fresh, again := printedLines(t, u, said)
	if !strings.HasPrefix(fresh.head, "HTTP/1.1 201") ||
		strings.Contains(fresh.head, "Idempotent-Replayed") {
		t.Errorf("the first printed line: %s\n%s", fresh.head, fresh.body)
	}
	if !strings.HasPrefix(again.head, "HTTP/1.1 201") ||
		!strings.Contains(again.head, "Idempotent-Replayed: true") || again.body != fresh.body {
		t.Errorf("the second printed line: %s\n%s", again.head, again.body)
	}
	var charge struct{ ID string }
	if err := json.Unmarshal([]byte(fresh.body), &charge); err != nil {
		t.Fatal(err)
	}

	first.signal(os.Interrupt) // only to dev itself; it has to end what it started
	if state := first.wait(); state.ExitCode() != 0 {
		t.Errorf("after Ctrl-C: %v, want exit code 0", state)
	}
	if left := u.processes(); len(left) > 0 {
		t.Errorf("still running after Ctrl-C: %q", left)
	}

	second := u.start()
	u.keeps(second, key, charge.ID, fresh.body)
	second.kill()
	eventually(t, "the simulator ends with dev", func() bool {
		for _, line := range u.processes() {
			if strings.Contains(line, "stripesim") {
				return false
			}
		}
		return true
	})

	third := u.start()
	u.keeps(third, key, charge.ID, fresh.body)
	c := apitest.NewClient(t, third.url, key)
	if a := c.Charge("after the crash", twenty); a.Code != http.StatusCreated {
		t.Errorf("a charge after the crash: %d %s", a.Code, a.Body)
	}
	third.signal(syscall.SIGTERM)
	if state := third.wait(); state.ExitCode() != 0 {
		t.Errorf("after SIGTERM: %v, want exit code 0", state)
	}
	if left := u.processes(); len(left) > 0 {
		t.Errorf("still running after SIGTERM: %q", left)
	}
}

// TestDevBesideItself: the second dev of a folder says why it cannot, and the first goes on; the
// line for other commands is whole, and a terminal that ran it can start dev again; a second signal
// ends everything at once, though a charge is under way.
func TestDevBesideItself(t *testing.T) {
	t.Parallel()
	u := newDevUser(t, nil)
	first := u.start()
	second := u.w.start("dev", u.command(binary, "dev"))
	if state := second.wait(); state.ExitCode() != 1 {
		t.Errorf("a second dev: %v, want exit code 1", state)
	}
	if want := fmt.Sprintf("paidonce: paidonce dev is already running in this folder (process "+
		"%d, %s)\n", first.cmd.Process.Pid, first.url); second.output() != want {
		t.Errorf("a second dev says %q, want %q", second.output(), want)
	}
	said := first.output()
	exports := regexp.MustCompile(`(?m)^  export DATABASE_URL=.*\\\n.*$`).FindString(said)
	for _, name := range []string{"DATABASE_URL='postgres://", "STRIPE_API_BASE=http://",
		"STRIPE_API_KEY=sk_test_", "STRIPE_WEBHOOK_SECRET=whsec_",
		"PAIDONCE_WEBHOOK_ALLOW_PRIVATE=true"} {
		if !strings.Contains(exports, name) {
			t.Errorf("the line for other commands lacks %s: %s", name, exports)
		}
	}
	inTerminal := func(line string) *exec.Cmd { return u.command("bash", "-c", exports+"\n"+line) }
	for _, line := range []string{" relay --once", " ops list", " events list --account dev"} {
		if out, err := inTerminal("exec '" + binary + "'" + line).CombinedOutput(); err != nil {
			t.Errorf("paidonce%s: %v\n%s", line, err, out)
		}
	}
	sim := first.await(`listed on (\S+/_sim/)`)[1]
	for url, want := range map[string]string{
		first.url + "/docs": "<redoc", first.url + "/docs/": "<redoc", first.url +
			"/openapi.yaml": "\nopenapi: 3", first.url + "/docs/openapi.yaml": "\nopenapi: 3",
		first.url + "/docs/nope": `"request_id":"req_`,
		first.url + "/":          "the reference is at /docs", sim: `"POST /_sim/faults"`,
	} {
		if got := "\n" + page(t, url); !strings.Contains(got, want) {
			t.Errorf("%s lacks %q: %.300s", url, want, got)
		}
	}
	if !strings.Contains(said, first.url+"/docs\n") {
		t.Errorf("dev does not name the reference: %s", said)
	}
	first.signal(os.Interrupt)
	first.wait()

	again := u.w.start("dev", inTerminal("exec '"+binary+"' dev"))
	again.url = again.await(`Paidonce is ready on (\S+)`)[1]
	key := again.await(`API key of the account dev: (sk_\w+)`)[1]
	sim = again.await(`listed on (\S+/_sim/)`)[1]
	if res, err := http.Post(sim+"faults", "application/json",
		strings.NewReader(`{"match":{"method":"POST"},"fault":"hang"}`)); err != nil ||
		res.StatusCode != http.StatusOK {
		t.Fatalf("a fault: %v %v", res, err)
	}
	c := apitest.NewClient(t, again.url, key)
	go func() { // nobody answers
		req := c.Request(http.MethodPost, "/v1/charges", twenty, "Content-Type", "application/json",
			"Idempotency-Key", "hangs", "Authorization", "Bearer "+key)
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
		}
	}()
	eventually(t, "the charge is under way", func() bool {
		return strings.Contains(page(t, sim+"faults"), `"hits":1`)
	})
	again.signal(os.Interrupt)
	eventually(t, "the first signal is taken", func() bool { return refused(again.url) })
	again.signal(os.Interrupt)
	if state := again.wait(); state.ExitCode() != 1 ||
		!strings.Contains(again.output(), "by a second signal") {
		t.Errorf("after two signals: %v\n%s", state, again.output())
	}
	if left := u.processes(); len(left) > 0 {
		t.Errorf("still running after two signals: %q", left)
	}
}

func page(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// refused reports whether nothing listens there.
func refused(url string) bool {
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err == nil {
		_ = conn.Close()
	}
	return err != nil
}

func (u *devUser) start() *proc {
	u.w.t.Helper()
	cmd := u.command(binary, "dev")
	p := u.w.start("dev", cmd)
	p.url = p.await(`Paidonce is ready on (\S+)`)[1]
	p.await(`/v1/idempotency_keys/`) // the last line that is printed
	return p
}

// command is run in the folder, as the user, with little more of an environment than a newcomer's
// shell has.
func (u *devUser) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = u.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + u.dir, "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = ownGroup()
	cmd.SysProcAttr.Credential = u.credential
	return cmd
}

// keeps checks that an instance knows what an earlier one did.
func (u *devUser) keeps(p *proc, key, id, body string) {
	u.w.t.Helper()
	if got := p.await(`API key of the account dev: (sk_\w+)`)[1]; got != key {
		u.w.t.Errorf("another API key: %s, want %s", got, key)
	}
	c := apitest.NewClient(u.w.t, p.url, key)
	if a := c.Get("/v1/charges"); !bytes.Contains(a.Body, []byte(id)) {
		u.w.t.Errorf("the list lacks %s: %s", id, a.Body)
	}
	if a := c.Get("/v1/charges/" + id); string(a.Body) != body {
		u.w.t.Errorf("the charge is %s, was %s", a.Body, body)
	}
}

type curlAnswer struct{ head, body string }

var curlLines = regexp.MustCompile(`(?m)^  curl .*?(\\\n.*)?$`)

// printedLines runs the lines that dev printed as they are, and returns the answers of the first
// two.
func printedLines(t *testing.T, u *devUser, said string) (fresh, again curlAnswer) {
	t.Helper()
	lines := curlLines.FindAllString(said, -1)
	if len(lines) != 4 {
		t.Fatalf("%d lines with curl, want 4:\n%s", len(lines), said)
	}
	var answers []curlAnswer
	for _, line := range lines {
		out, err := u.command("bash", "-c", line).Output()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		head, body, found := strings.Cut(string(out), "\r\n\r\n")
		if !found { // without -i
			head, body = "", head
		}
		if !json.Valid([]byte(body)) {
			t.Errorf("%s\nprints %s", line, out)
		}
		answers = append(answers, curlAnswer{head, body})
	}
	return answers[0], answers[1]
}

// processes lists what runs in or for the folder: the simulator has it in its arguments; PostgreSQL
// its data folder.
func (u *devUser) processes() (found []string) {
	u.w.t.Helper()
	out, err := exec.Command("ps", "-e", "-ww", "-o", "pid=,stat=,args=").Output()
	if err != nil {
		u.w.t.Fatal("ps: ", err)
	}
	places := []string{u.dir + "/"}
	if other := u.databaseFolder(); other != "" {
		places = append(places, other)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 3 || strings.HasPrefix(f[1], "Z") {
			continue
		}
		for _, place := range places {
			if strings.Contains(line, place) {
				found = append(found, strings.TrimSpace(line))
				break
			}
		}
	}
	return found
}

// databaseFolder is where PostgreSQL's data are when its user cannot reach .paidonce.
func (u *devUser) databaseFolder() string {
	text, err := os.ReadFile(filepath.Join(u.dir, ".paidonce", "postgres-folder"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// endDatabase ends a server that a failed test has left behind.
func (u *devUser) endDatabase() {
	for _, line := range u.processes() {
		var pid int
		if _, err := fmt.Sscan(line, &pid); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if dir := u.databaseFolder(); dir != "" {
		_ = os.RemoveAll(dir)
	}
}
