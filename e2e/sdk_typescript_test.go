package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
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
	copyFiles(t, typescript, dir, "package.json", "tsconfig.json", "README.md",
		"openapi-ts.config.ts")
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
	out, err := w.node(dir, p, nil, "--test", "--test-force-exit", "--test-reporter=spec",
		"test/unit.test.mjs", "test/webhooks.test.mjs", "test/live.test.mjs").CombinedOutput()
	if said := string(out); err != nil || !strings.Contains(said, "fail 0") ||
		!strings.Contains(said, "skipped 0") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTypeScriptExample(t *testing.T) {
	t.Parallel()
	dir := compiled(t)
	w := newWorld(t)
	out, err := w.node(dir, w.serve(), []string{"PAYMENTS=" + t.TempDir()},
		"example/shop.mjs").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "(known already)") ||
		!strings.Contains(string(out), "declined: insufficient_funds") ||
		!strings.Contains(string(out), "refunded 500") {
		t.Errorf("%v\n%s", err, out)
	}
}
