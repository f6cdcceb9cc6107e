package e2e

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// newcomer has a clone of the repository, of which the SDK is all that matters, beside an empty
// folder for a project.
type newcomer struct {
	w      *world
	p      *proc
	readme string
	dir    string
}

func newNewcomer(t *testing.T, sdk string) *newcomer {
	t.Helper()
	clone := filepath.Join(t.TempDir(), "paidonce/sdk", filepath.Base(sdk))
	entries, err := os.ReadDir(sdk)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		from, to := filepath.Join(sdk, entry.Name()), filepath.Join(clone, entry.Name())
		switch {
		case entry.Name() == "node_modules": // made here, and in no clone
		case entry.IsDir():
			err = os.CopyFS(to, os.DirFS(from))
		default:
			if err = os.MkdirAll(clone, 0o755); err == nil {
				copyFiles(t, sdk, clone, entry.Name())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	readme, err := os.ReadFile(filepath.Join(clone, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := &newcomer{
		w: newWorld(t), readme: string(readme), dir: filepath.Join(clone, "../../../shop"),
	}
	if err := os.Mkdir(n.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	n.p = n.w.serve()
	return n
}

// block returns the nth block of a language.
func (n *newcomer) block(language string, nth int) string {
	n.w.t.Helper()
	blocks := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(n.readme,
		-1)
	if len(blocks) <= nth {
		n.w.t.Fatalf("the README has only %d blocks of %s", len(blocks), language)
	}
	return blocks[nth][1]
}

func (n *newcomer) write(name, text string) {
	n.w.t.Helper()
	if err := os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o600); err != nil {
		n.w.t.Fatal(err)
	}
}

// run runs commands in the project's folder, and returns what they print.
func (n *newcomer) run(script string, env ...string) string {
	n.w.t.Helper()
	cmd := exec.CommandContext(n.w.t.Context(), "sh", "-euc", script)
	cmd.Dir = n.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PYTHONPATH=") && !strings.HasPrefix(v, "NODE_PATH=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "PAIDONCE_URL="+n.p.url, "PAIDONCE_API_KEY="+n.w.apiKey)
	cmd.Env = append(cmd.Env, env...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		n.w.t.Fatalf("%s\n%v\n%s%s", script, err, out.Bytes(), complaints.Bytes())
	}
	return out.String()
}

// twice runs a program of the README twice: one charge.
func (n *newcomer) twice(command string, env ...string) {
	n.w.t.Helper()
	first := n.run(command, env...)
	if again := n.run(command, env...); !strings.Contains(first, " succeeded") || again != first {
		n.w.t.Errorf("it said %q, then %q", first, again)
	}
	n.w.sim.mustHave(n.w.t, 1)
}

// What the README of each SDK says under Install is done, in a folder of its own, and then its
// program runs.

func TestTypeScriptInstall(t *testing.T) {
	t.Parallel()
	needsNode(t)
	n := newNewcomer(t, typescript)
	n.run(n.block("sh", 0), "npm_config_offline=true", "npm_config_cache="+t.TempDir())
	n.write("pay.mjs", n.block("js", 0))
	n.twice("node pay.mjs")
}

func TestPythonInstall(t *testing.T) {
	t.Parallel()
	python := needsPython(t)
	n := newNewcomer(t, pythonSDK)
	n.write("pay.py", n.block("python", 0))
	n.twice(n.block("sh", 0) + python + " pay.py")
}

func TestGoSDKInstall(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t, goSDK)
	n.run(n.block("sh", 0), "GOFLAGS=", "GOWORK=")
	program, refund := n.block("go", 0), n.block("go", 1)
	n.write("main.go", program)
	n.twice("go run .", "GOFLAGS=", "GOWORK=")
	n.write("main.go", strings.TrimSuffix(program, "}\n")+refund+"}\n")
	first := n.run("go run .", "GOFLAGS=", "GOWORK=")
	if again := n.run("go run .", "GOFLAGS=", "GOWORK="); again != first ||
		strings.Count(first, "\nre_") != 2 || !strings.Contains(first, " 500\n") {
		t.Errorf("it said %q, then %q", first, again)
	}
}

// The compiled TypeScript SDK that is committed is what its source is compiled to.
func TestTypeScriptSDKIsCompiled(t *testing.T) {
	t.Parallel()
	want, got := tree(t, filepath.Join(compiled(t), "dist")),
		tree(t, filepath.Join(typescript, "dist"))
	for name, text := range want {
		if got[name] != text {
			t.Errorf("sdk/typescript/dist/%s is stale: run make sdk and commit", name)
		}
	}
	for name := range got {
		if _, there := want[name]; !there {
			t.Errorf("sdk/typescript/dist/%s comes from no source", name)
		}
	}
}

// tree reads all files of a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	folder := os.DirFS(dir)
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(folder, name)
		texts[name] = string(text)
		return err
	})
	if err != nil || len(texts) == 0 {
		t.Fatalf("%s has %d files, %v", dir, len(texts), err)
	}
	return texts
}
