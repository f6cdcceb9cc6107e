package e2e

import (
	"encoding/pem"
	"fmt"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const pythonSDK = "../sdk/python"

// needsPython returns the interpreter, $PYTHON or python3, and skips a test where there is none:
// `make test` needs nothing but Go and make. `make test-sdk` sets PAIDONCE_NEED_PYTHON, and then it
// is a failure.
func needsPython(t *testing.T) string {
	t.Helper()
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	said, err := exec.CommandContext(t.Context(), python, "-c",
		"import sys; print(sys.version_info >= (3, 9))").CombinedOutput()
	if err == nil && strings.TrimSpace(string(said)) == "True" {
		return python
	}
	skipPython(t, fmt.Sprintf("Python 3.9 or newer is needed, and %s is not: %v %s", python, err,
		said))
	return ""
}

func skipPython(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("PAIDONCE_NEED_PYTHON") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// python prepares a program of the SDK's against an instance. It runs in that folder, and leaves
// nothing in the source.
func (w *world) python(dir string, p *proc, env []string, args ...string) *exec.Cmd {
	w.t.Helper()
	sdk, err := filepath.Abs(pythonSDK)
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(needsPython(w.t), append([]string{"-W", "error"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + w.t.TempDir(),
		"PYTHONPATH=" + sdk, "PYTHONDONTWRITEBYTECODE=1",
		"PAIDONCE_URL=" + p.url, "PAIDONCE_API_KEY=" + w.apiKey, "SIM_URL=" + w.sim.url,
	}, env...)
	cmd.SysProcAttr = ownGroup()
	return cmd
}

func TestPythonSDK(t *testing.T) {
	t.Parallel()
	needsPython(t)
	w := newWorld(t, "PAIDONCE_WEBHOOK_ALLOW_PRIVATE=true")
	out, err := w.python(pythonSDK, w.serve(), nil, "-m", "unittest", "discover",
		"--top-level-directory", ".", "--start-directory", "tests", "-v").CombinedOutput()
	if said := string(out); err != nil || !strings.HasSuffix(said, "\nOK\n") ||
		!strings.Contains(said, "test_kill_between_and_within_attempts_then_resume") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A hundred charges by eight threads over a server that is killed twice and a provider that drops
// answers: a hundred, no more.
func TestPythonSDKChaos(t *testing.T) {
	t.Parallel()
	needsPython(t)
	w := newWorld(t)
	const charges, kills = 100, 2
	w.sim.control("POST", "faults", map[string]any{
		"match": map[string]any{"method": "POST", "path": "/v1/charges"}, "probability": 0.15,
		"count": 0, "fault": fault{"type": "drop_after"},
	}, nil)
	w.sim.slow(60)
	p := w.serve()
	script := w.start("chaos", w.python(pythonSDK, p, []string{fmt.Sprint("CHARGES=", charges)},
		"-m", "tests.chaos"))
	address := strings.TrimPrefix(p.url, "http://")
	for i := range kills {
		script.await(fmt.Sprintf(`paid %d\n`, 30*(i+1)))
		p.kill()
		p = w.serve("PAIDONCE_LISTEN=" + address)
	}
	script.await(fmt.Sprintf(`unfinished 0\ncharges %d\n`, charges))
	w.sim.mustHave(t, charges)
	w.checkBooks()
}

// readme returns the program that the README begins with.
func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(pythonSDK, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("the README has no example")
	}
	return string(block[1])
}

func TestPythonExample(t *testing.T) {
	t.Parallel()
	needsPython(t)
	w := newWorld(t)
	out, err := w.python(pythonSDK, w.serve(), []string{"PAYMENTS=" + t.TempDir()},
		"example/shop.py").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "(known already)") ||
		!strings.Contains(string(out), "declined: insufficient_funds") ||
		!strings.Contains(string(out), "refunded 500") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Over TLS the same; and nothing is sent to a server whose certificate nobody vouches for.
func TestPythonSDKOverTLS(t *testing.T) {
	t.Parallel()
	needsPython(t)
	w := newWorld(t)
	p := w.serve()
	target, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(target))
	front.Config.ErrorLog = log.New(t.Output(), "TLS: ", 0)
	front.StartTLS()
	t.Cleanup(front.Close)
	certificate := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	if err := os.WriteFile(certificate, text, 0o600); err != nil {
		t.Fatal(err)
	}
	secure := &proc{url: front.URL}
	var out []byte
	// on a busy machine the last attempt has no time for a handshake
	for _, deadline := range []string{"1.0", "4.0", "16.0"} {
		impatient := strings.Replace(readme(t), "base_url=", "deadline="+deadline+", base_url=", 1)
		out, err = w.python(t.TempDir(), secure, nil, "-c", impatient).CombinedOutput()
		if err == nil || strings.Contains(string(out), "certificate verify failed") {
			break
		}
	}
	if err == nil || !strings.Contains(string(out), "certificate verify failed") {
		t.Errorf("%v\n%s", err, out)
	}
	w.sim.mustHave(t, 0)
	out, err = w.python(t.TempDir(), secure, []string{"SSL_CERT_FILE=" + certificate},
		"-c", readme(t)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), " succeeded") {
		t.Errorf("%v\n%s", err, out)
	}
	w.sim.mustHave(t, 1)
}

// The package's own code is strictly typed, and what callers get wrong is refused
// (tests/misuse.py).
func TestPythonSDKTypes(t *testing.T) {
	t.Parallel()
	modules := installed(t, "../sdkcheck/pyright")
	mustNode(t, pythonSDK, "node", filepath.Join(modules, "pyright/index.js"))
}
