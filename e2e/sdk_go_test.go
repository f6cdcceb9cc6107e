package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const goSDK = "../sdk/go"

// goTool runs the go command in the SDK's folder, which is a module of its own and so no part of
// `go test ./...` here.
func (w *world) goTool(p *proc, dir string, env []string, args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), env...), "PAIDONCE_URL="+p.url, "PAIDONCE_API_KEY="+
		w.apiKey, "SIM_URL="+w.sim.url, "SDK_DATABASE_URL="+host.create(w.t, false))
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("go %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestGoSDK(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// TestLiveWebhook alone needs more than a server: TestWebhooksAreVerified runs it.
	said := w.goTool(w.serve(), goSDK, nil, "test", "-count=1", "-v", "./...")
	if strings.Count(said, "--- SKIP") > 1 || !strings.Contains(said, "--- PASS: TestLiveCrash") {
		t.Errorf("tests were skipped:\n%s", said)
	}
}

// The README's program is the example, and it charges once however often it is run.
func TestGoSDKReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join(goSDK, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile(filepath.Join(goSDK, "example/main.go"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(readme)
	if block == nil || !strings.HasSuffix(string(example), string(block[1])) {
		t.Error("the README shows another program than example/main.go")
	}
	w := newWorld(t)
	p := w.serve()
	dir := t.TempDir()
	program := filepath.Join(dir, "example")
	w.goTool(p, goSDK, nil, "build", "-o", program, "./example")
	var said [2]string
	for i := range said {
		out, err := w.programIn(dir, p, program).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		said[i] = string(out)
	}
	if !strings.Contains(said[0], " succeeded") || said[0] != said[1] {
		t.Errorf("it said %q, then %q", said[0], said[1])
	}
	w.sim.mustHave(t, 1)
}

// programIn prepares a client's program in a folder.
func (w *world) programIn(dir string, p *proc, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "PAIDONCE_URL=" + p.url,
		"PAIDONCE_API_KEY=" + w.apiKey,
	}
	return cmd
}
