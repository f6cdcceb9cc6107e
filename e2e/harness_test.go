// Package e2e tries the product from outside: the real binary, real processes and signals, a real
// PostgreSQL, the simulated provider as a process of its own. Each test is a world: one database,
// one provider, and as many instances of the product as it starts.
package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"paidonce/api/apitest"
)

// patience bounds every wait for something that has to happen; a machine on which it does not
// suffice is broken.
const patience = 60 * time.Second

// eventually waits until the condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}

// world is what a test plays in.
type world struct {
	t      *testing.T
	dbURL  string
	env    []string // of every process; later entries win
	sim    *sim
	apiKey string
	// program is what runs, if it is not this run's binary.
	program string

	mu    sync.Mutex
	procs []*proc
	names map[string]int
}

// fast are settings that let leases go stale soon: a provider call may take 3 s, and as long after
// that its owner is presumed gone. A loaded machine needs some of this for a commit.
var fast = []string{
	"PAIDONCE_PROVIDER_TIMEOUT=3s", "PAIDONCE_STALE_AFTER=6s", "PAIDONCE_LISTEN=127.0.0.1:0",
	"PAIDONCE_DB_MAX_CONNS=6", "PAIDONCE_WORKERS=none",
}

// newWorld makes a world with a migrated database, a provider and an account; env changes the
// settings of its processes.
func newWorld(t *testing.T, env ...string) *world {
	t.Helper()
	return newWorldOn(t, host.create(t, true), env...)
}

func newWorldOn(t *testing.T, dbURL string, env ...string) *world {
	t.Helper()
	w := &world{t: t, dbURL: dbURL, names: map[string]int{}}
	w.sim = w.startSim()
	w.env = append(append([]string{"DATABASE_URL=" + dbURL,
		"STRIPE_API_KEY=sk_test_e2eProviderSecret", "STRIPE_API_BASE=" + w.sim.url}, fast...),
		env...)
	w.apiKey = w.newKey("shop").APIKey
	return w
}

// proc is a running process of the product.
type proc struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd
	log  string // file with all that it says
	url  string // where it serves
	done chan struct{}
}

// command prepares the binary with the environment of the world and nothing of our own but what a
// shell would have.
func (w *world) command(env []string, args ...string) *exec.Cmd {
	program := binary
	if w.program != "" {
		program = w.program
	}
	cmd := exec.Command(program, args...)
	// The race detector lets every program sleep for a second when it ends; most of them are short.
	cmd.Env = append(append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
		"TMPDIR=" + os.TempDir(), "GORACE=atexit_sleep_ms=0"}, w.env...), env...)
	cmd.SysProcAttr = ownGroup()
	return cmd
}

// start starts a process that runs on. Whatever it leaves behind is killed when the test ends.
func (w *world) start(name string, cmd *exec.Cmd) *proc {
	w.t.Helper()
	w.mu.Lock()
	w.names[name]++
	if n := w.names[name]; n > 1 {
		name = fmt.Sprint(name, "-", n)
	}
	p := &proc{
		t: w.t, name: name, cmd: cmd, log: filepath.Join(w.t.TempDir(), name+".log"),
		done: make(chan struct{}),
	}
	w.procs = append(w.procs, p)
	w.mu.Unlock()
	// A file rather than a pipe: nothing has to be read for the process to go on, and who outlives
	// it keeps nobody waiting.
	file, err := os.Create(p.log)
	if err != nil {
		w.t.Fatal(err)
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() { _ = cmd.Wait(); close(p.done) }()
	w.t.Cleanup(p.cleanUp)
	return p
}

func (p *proc) cleanUp() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	p.wait()
	said := p.output()
	if strings.Contains(said, "DATA RACE") || strings.Contains(said, "\npanic: ") ||
		strings.Contains(said, "goroutine 1 [") {
		p.t.Errorf("%s has a race or panicked", p.name)
	}
	if p.t.Failed() {
		const most = 8000
		p.t.Logf("--- %s said:\n%s", p.name, said[max(0, len(said)-most):])
	}
}

func (p *proc) output() string {
	said, err := os.ReadFile(p.log)
	if err != nil {
		p.t.Error(err)
	}
	return string(said)
}

// await waits until the process has said something, and returns the submatches.
func (p *proc) await(pattern string) (found []string) {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	eventually(p.t, p.name+" says "+pattern, func() bool {
		ended := p.ended() // looked at first, so that nothing it said at its end is missed
		found = re.FindStringSubmatch(p.output())
		if found == nil && ended {
			p.t.Fatalf("%s ended (%v) without saying %s", p.name, p.cmd.ProcessState, pattern)
		}
		return found != nil
	})
	return found
}

func (p *proc) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// wait waits for the end of the process.
func (p *proc) wait() *os.ProcessState {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Errorf("%s does not end", p.name)
		return &os.ProcessState{}
	}
	return p.cmd.ProcessState
}

func (p *proc) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

func (p *proc) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	p.wait()
}

var servingLine = `"msg":"serving","address":"([^"]+)"`

// serve starts an instance of the API, on a port that the system chooses.
func (w *world) serve(env ...string) *proc {
	w.t.Helper()
	p := w.start("serve", w.command(env, "serve"))
	p.url = "http://" + p.await(servingLine)[1]
	return p
}

// result is what a command that ends by itself came to.
type result struct {
	stdout, stderr string
	code           int
}

// run runs a command to its end.
func (w *world) run(env []string, args ...string) result {
	w.t.Helper()
	cmd := w.command(env, args...)
	if cmd.Path == binary {
		cmd.Path = plain
	}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		w.t.Fatalf("%v: %v", args, err)
	}
	// it says then where it hangs
	late := time.AfterFunc(2*patience, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	err := cmd.Wait()
	if !late.Stop() {
		w.t.Errorf("%v did not end within %v", args, 2*patience)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("%v: %v", args, err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// must runs a command that has to succeed.
func (w *world) must(args ...string) result {
	w.t.Helper()
	r := w.run(nil, args...)
	if r.code != 0 {
		w.t.Fatalf("paidonce %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout,
			r.stderr)
	}
	return r
}

// madeKey is what `apikeys create --json` prints.
type madeKey struct {
	ID        string `json:"id"`
	Account   string `json:"account"`
	AccountID string `json:"account_id"`
	APIKey    string `json:"api_key"`
}

func (w *world) newKey(account string) (k madeKey) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.must("apikeys", "create", "--account", account,
		"--json").stdout), &k); err != nil {
		w.t.Fatal(err)
	}
	return k
}

// client returns a client of an instance; every answer is checked against openapi.yaml.
func (w *world) client(p *proc) *apitest.Client {
	return apitest.NewClient(w.t, p.url, w.apiKey)
}

// get reads a path that need not answer: 0 when it does not.
func get(address string) int {
	res, err := (&http.Client{Timeout: 10 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true}}).Get(address)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}
