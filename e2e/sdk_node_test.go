package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// npmPatience bounds one installation.
const npmPatience = 3 * time.Minute

// needsNode skips a test where Node.js is not installed: `make test` needs nothing but Go and make.
// `make test-sdk` sets PAIDONCE_NEED_NODE, and then it is a failure.
func needsNode(t *testing.T) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			skipNode(t, "no "+program)
		}
	}
	said, err := exec.CommandContext(t.Context(), "node", "--version").Output()
	var major, minor int
	if _, scanned := fmt.Sscanf(string(said), "v%d.%d", &major, &minor); err != nil ||
		scanned != nil || major < 20 || major == 20 && minor < 14 {
		skipNode(t, fmt.Sprintf("Node.js 20.14 or newer is needed, and here is %s", said))
	}
}

func skipNode(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("PAIDONCE_NEED_NODE") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// installs makes one installation at a time.
var installs sync.Mutex

// installed returns a folder with what the lock file of dir pins. It is kept in the user's cache,
// named after the lock file, so that only the first run needs a registry.
func installed(t *testing.T, dir string) string {
	t.Helper()
	needsNode(t)
	installs.Lock()
	defer installs.Unlock()
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sum := sha256.Sum256(lock)
	base := filepath.Join(cache, "paidonce-sdk")
	home := filepath.Join(base, hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(home); err == nil {
		return filepath.Join(home, "node_modules")
	}
	if err := os.MkdirAll(base, 0o755); err != nil {
		t.Fatal(err)
	}
	scratch, err := os.MkdirTemp(base, "new-") //nolint:usetesting // it has to be on the file system that it is renamed on
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(scratch)
	copyFiles(t, dir, scratch, "package.json", "package-lock.json")
	ctx, cancel := context.WithTimeout(t.Context(), npmPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund",
		"--loglevel=error")
	cmd.Dir = scratch
	if out, err := cmd.CombinedOutput(); err != nil {
		skipNode(t, fmt.Sprintf("npm ci: %v\n%s", err, out))
	}
	// Whole or not at all; another run may have been faster, and then its folder is as good.
	if err := os.Rename(scratch, home); err != nil && !errors.Is(err, os.ErrExist) {
		if _, there := os.Stat(home); there != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(home, "node_modules")
}

func copyFiles(t *testing.T, from, to string, names ...string) {
	t.Helper()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const sdkcheck = "../sdkcheck/node"

// stripeNode returns a folder with the scripts and what they import.
func stripeNode(t *testing.T) string {
	t.Helper()
	modules := installed(t, sdkcheck)
	dir := t.TempDir()
	copyFiles(t, sdkcheck, dir, "package.json", "setup.mjs", "stripe.test.mjs",
		"intents.test.mjs", "stripe.webhook.mjs", "chaos.mjs")
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// node prepares a script against an instance.
func (w *world) node(dir string, p *proc, env []string, args ...string) *exec.Cmd {
	cmd := exec.Command("node", args...)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "PAIDONCE_URL=" + p.url,
		"PAIDONCE_API_KEY=" + w.apiKey, "SIM_URL=" + w.sim.url, "NO_COLOR=1",
	}, env...)
	cmd.SysProcAttr = ownGroup()
	return cmd
}

var stripeNodes = []string{"stripe-newest", "stripe-2023"} // names of sdkcheck/node/package.json

func TestStripeNode(t *testing.T) {
	t.Parallel()
	for _, module := range stripeNodes {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			dir := stripeNode(t)
			w := newWorld(t, disputesHear...)
			p := w.serve()
			w.sim.tellTo(p, disputesSecret)
			out, err := w.node(dir, p, []string{"STRIPE_MODULE=" + module}, "--test",
				"--test-force-exit", "--test-reporter=spec", "stripe.test.mjs").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "fail 0") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestStripeNodePaymentIntents(t *testing.T) {
	t.Parallel()
	for _, module := range stripeNodes {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			dir := stripeNode(t)
			w := newWorld(t, "STRIPE_WEBHOOK_SECRET=whsec_intents", "PAIDONCE_WORKERS=inbox")
			p := w.serve()
			w.sim.tellTo(p, "whsec_intents")
			out, err := w.node(dir, p, []string{"STRIPE_MODULE=" + module}, "--test",
				"--test-force-exit", "--test-reporter=spec", "intents.test.mjs").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "fail 0") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// A hundred charges over a server that is killed twice and a provider that drops answers: a
// hundred, no more.
func TestStripeNodeChaos(t *testing.T) {
	t.Parallel()
	for _, module := range stripeNodes {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			dir := stripeNode(t)
			w := newWorld(t)
			const charges, kills = 100, 2
			w.sim.control("POST", "faults", map[string]any{
				"match":       map[string]any{"method": "POST", "path": "/v1/charges"},
				"probability": 0.15, "count": 0, "fault": fault{"type": "drop_after"},
			}, nil)
			w.sim.slow(60)
			p := w.serve()
			script := w.start("chaos", w.node(dir, p,
				[]string{"STRIPE_MODULE=" + module, fmt.Sprint("CHARGES=", charges)}, "chaos.mjs"))
			address := strings.TrimPrefix(p.url, "http://")
			for i := range kills {
				script.await(fmt.Sprintf(`paid %d\n`, 30*(i+1)))
				p.kill()
				p = w.serve("PAIDONCE_LISTEN=" + address)
			}
			script.await(fmt.Sprintf(`charges %d\n`, charges))
			w.sim.mustHave(t, charges)
			w.checkBooks()
		})
	}
}
