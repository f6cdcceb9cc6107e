package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"paidonce/api/apitest"
)

// packaged is where a package for Debian was installed: a folder with a dpkg of its own, so that
// the machine stays as it is.
type packaged struct {
	t    *testing.T
	root string
}

func (p packaged) dpkg(args ...string) {
	p.t.Helper()
	// What it depends on is on the machine, not in the folder.
	cmd := exec.CommandContext(p.t.Context(), "dpkg", append([]string{"--root=" + p.root,
		"--force-script-chrootless", "--force-depends"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("dpkg %v: %v\n%s", args, err, out)
	}
}

func (p packaged) has(name string) bool {
	_, err := os.Lstat(filepath.Join(p.root, name))
	return err == nil
}

func (p packaged) read(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.root, name))
	if err != nil {
		p.t.Error(err)
	}
	return string(text)
}

const settingsFile = "etc/paidonce/env"

// TestPackage installs the package that PAIDONCE_DEB names, charges with it, installs it again
// while its server serves, and purges it.
func TestPackage(t *testing.T) {
	deb := os.Getenv("PAIDONCE_DEB")
	if deb == "" {
		t.Skip("PAIDONCE_DEB names no package: make test-packages")
	}
	if os.Getuid() != 0 {
		t.Skip("only root may give files to root")
	}
	p := packaged{t, t.TempDir()}
	if err := os.MkdirAll(filepath.Join(p.root, "var/lib/dpkg/info"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"status", "available"} {
		if err := os.WriteFile(filepath.Join(p.root, "var/lib/dpkg", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.dpkg("--install", deb)
	p.checkFiles()

	w := newWorld(t)
	w.program = filepath.Join(p.root, "usr/bin/paidonce")
	if said := w.must("--version").stdout; strings.Contains(said, "unknown") {
		t.Errorf("no revision: %s", said)
	}
	w.must("migrate")
	server := w.serve()
	c := w.client(server)
	charged(t, c, "before")
	p.write(settingsFile, "PAIDONCE_LISTEN='127.0.0.1:9000'\n")
	p.dpkg("--force-confold", "--install", deb)
	charged(t, c, "while")
	if text := p.read(settingsFile); !strings.Contains(text, ":9000") {
		t.Errorf("the settings were overwritten:\n%s", text)
	}
	charged(t, w.client(w.serve()), "after")

	p.dpkg("--remove", "paidonce")
	if p.has("usr/bin/paidonce") || !p.has(settingsFile) ||
		p.has("etc/systemd/system/multi-user.target.wants/paidonce.service") {
		t.Error("what is removed is the program, not its settings")
	}
	p.dpkg("--purge", "paidonce")
	for _, name := range []string{"etc/paidonce", "usr/share/doc/paidonce", "usr/lib/systemd"} {
		if p.has(name) {
			t.Errorf("%s is left", name)
		}
	}
}

func charged(t *testing.T, c *apitest.Client, key string) {
	t.Helper()
	if got := c.Charge(key, twenty); got.Code != http.StatusCreated {
		t.Errorf("%s: %d %s", key, got.Code, got.Body)
	}
}

func (p packaged) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.root, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// checkFiles also enables the server's unit, as an administrator does.
func (p packaged) checkFiles() {
	p.t.Helper()
	for _, name := range []string{
		"usr/share/man/man1/paidonce.1.gz", "usr/share/man/man1/paidonce-serve.1.gz",
		"usr/share/bash-completion/completions/paidonce", "usr/share/doc/paidonce/copyright",
		"usr/lib/systemd/system/paidonce-reconcile.timer",
	} {
		if !p.has(name) {
			p.t.Errorf("%s is missing", name)
		}
	}
	if info, err := os.Stat(filepath.Join(p.root, settingsFile)); err != nil ||
		info.Mode() != 0o600 {
		p.t.Errorf("%s holds secrets: %v, %v", settingsFile, info.Mode(), err)
	}
	for _, unit := range []string{"paidonce.service", "paidonce-reconcile.service"} {
		text := p.read("usr/lib/systemd/system/" + unit)
		_, program, _ := strings.Cut(text, "\nExecStart=/")
		program, _, _ = strings.Cut(program, " ")
		if !p.has(program) {
			p.t.Errorf("%s starts %q, which is not there", unit, program)
		}
	}
	if _, err := exec.LookPath("systemctl"); err != nil {
		return
	}
	if !strings.Contains(p.read("etc/passwd"), "\npaidonce:") &&
		!strings.HasPrefix(p.read("etc/passwd"), "paidonce:") {
		p.t.Error("there is no user for the units")
	}
	out, err := exec.CommandContext(p.t.Context(), "systemctl", "--root="+p.root, "enable",
		"paidonce.service").CombinedOutput()
	if err != nil {
		p.t.Errorf("systemctl enable: %v\n%s", err, out)
	}
}
