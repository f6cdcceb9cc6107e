package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// curls are the blocks of a page that call a server.
func curls(t *testing.T, page string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(string(text), "```") {
		if _, script, _ := strings.Cut(block, "\n"); i%2 == 1 && strings.HasPrefix(script, "curl ") { // the first line names the language
			blocks = append(blocks, script)
		}
	}
	return blocks
}

// The curl lines of README.md and docs/ work as they stand there, but for the addresses and the key. (TestGuides runs those of docs/guides/.)
func TestCurlLinesOfTheDocs(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	w := newWorld(t)
	p := w.serve()
	here := strings.NewReplacer("http://127.0.0.1:8080", p.url, "http://127.0.0.1:12111", w.sim.url, "sk_…", w.apiKey)
	run := func(script string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "sh", "-euc", "curl() { command curl -sS --fail \"$@\"; }\n"+here.Replace(script)).CombinedOutput()
		if err != nil {
			t.Errorf("%s\n%v\n%s", script, err, out)
		}
		return string(out)
	}
	readme := curls(t, "../README.md")
	if len(readme) < 2 {
		t.Fatalf("README.md has only %d such blocks", len(readme))
	}
	for i := range readme {
		first := run(readme[i])
		if i > 0 {
			continue
		}
		// What README.md says about its first line.
		second := run(readme[i])
		_, made, _ := strings.Cut(first, "{")
		_, repeated, _ := strings.Cut(second, "{")
		if !strings.Contains(first, "201") || !strings.Contains(second, "Idempotent-Replayed: true") || made == "" || made != repeated {
			t.Errorf("the first time:\n%s\nthe second time:\n%s", first, second)
		}
	}
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		for _, script := range curls(t, page) {
			run(script)
		}
	}
}
