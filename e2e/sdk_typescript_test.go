package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const typescript = "../sdk/typescript"

// compiled returns a folder with the TypeScript SDK, compiled: nothing is written into the source.
func compiled(t *testing.T) string {
	t.Helper()
	modules := installed(t, typescript)
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "src"), os.DirFS(filepath.Join(typescript, "src"))); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"test", "example"} {
		if err := os.CopyFS(filepath.Join(dir, sub), os.DirFS(filepath.Join(typescript, sub))); err != nil {
			t.Fatal(err)
		}
	}
	copyFiles(t, typescript, dir, "package.json", "tsconfig.json", "README.md", "openapi-ts.config.ts")
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	mustNode(t, dir, "node", "node_modules/typescript/bin/tsc", "-p", "tsconfig.json")
	return dir
}

func mustNode(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestTypeScriptSDK(t *testing.T) {
	t.Parallel()
	dir := compiled(t)
	w := newWorld(t)
	p := w.serve()
	out, err := w.node(dir, p, nil, "--test", "--test-force-exit", "--test-reporter=spec", "test/unit.test.mjs", "test/webhooks.test.mjs", "test/live.test.mjs").CombinedOutput()
	if said := string(out); err != nil || !strings.Contains(said, "fail 0") || !strings.Contains(said, "skipped 0") {
		t.Errorf("%v\n%s", err, out)
	}
}

// What a newcomer copies from the README runs, and runs again without a second charge; so does the example.
func TestTypeScriptReadme(t *testing.T) {
	t.Parallel()
	dir := compiled(t)
	w := newWorld(t)
	p := w.serve()
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```js\n(.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("the README has no example")
	}
	if err := os.WriteFile(filepath.Join(dir, "readme.mjs"), block[1], 0o600); err != nil {
		t.Fatal(err)
	}
	var said [2]string
	for i := range said {
		out, err := w.node(dir, p, nil, "readme.mjs").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		said[i] = string(out)
	}
	if !strings.Contains(said[0], " succeeded") || said[0] != said[1] {
		t.Errorf("it said %q, then %q", said[0], said[1])
	}
	w.sim.mustHave(t, 1)
	out, err := w.node(dir, p, []string{"PAYMENTS=" + t.TempDir()}, "example/shop.mjs").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "(known already)") || !strings.Contains(string(out), "declined: insufficient_funds") || !strings.Contains(string(out), "refunded 500") {
		t.Errorf("%v\n%s", err, out)
	}
}
