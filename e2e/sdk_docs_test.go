package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each row of docs/compatibility.md names tests, and they exist.
func TestCompatibilityIsTested(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, folder := range []string{".", "../api", "../charges"} {
		found, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	defined := map[string]bool{}
	declaration := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, name := range files {
		code, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range declaration.FindAllStringSubmatch(string(code), -1) {
			defined[found[1]] = true
		}
	}
	named := regexp.MustCompile("`(Test\\w+)`")
	rows := 0
	for _, line := range strings.Split(string(page), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasSuffix(line, "| tests |") {
			continue
		}
		rows++
		tests := named.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 {
			t.Errorf("no test holds this row: %s", line)
		}
		for _, test := range tests {
			if !defined[test[1]] {
				t.Errorf("there is no %s, which this row names: %s", test[1], line)
			}
		}
	}
	if rows < 20 {
		t.Errorf("only %d rows were read", rows)
	}
}

// fence is a block of a page: commands, or what they print.
var fence = regexp.MustCompile("(?ms)^```(sh|text)\n(.*?)^```$")

// blockEnd separates what the blocks print; nothing else prints it.
const blockEnd = "-- end of block --"

// onPath is how a guide finds the program that make dev built.
const onPath = `export PATH="$PWD/bin:$PATH"`

// Every command of the guides is run, block after block in one shell for each guide, and what a
// page shows below a block is what it prints. All of them meet the same installation, and each
// comes twice: what a page says holds on one that has been used.
func TestGuides(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"sh", "curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	pages, err := filepath.Glob("../docs/guides/*.md")
	pages = slices.DeleteFunc(pages, func(page string) bool { return page == payersGuide })
	if err != nil || len(pages) < 10 {
		t.Fatalf("%v %v", pages, err)
	}
	w := newWorld(t, "STRIPE_WEBHOOK_SECRET=whsec_guide", "PAIDONCE_WORKERS=inbox")
	p := w.serve()
	for _, round := range []string{"unused", "used"} {
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			blocks := fence.FindAllStringSubmatch(string(text), -1)
			if len(blocks) == 0 {
				t.Fatalf("%s has no commands", page)
			}
			// Each is opened by itself: it says what runs, and how its commands are found.
			if first := blocks[0][2]; !strings.Contains(string(text), "`make dev`") ||
				!strings.HasPrefix(first, onPath) {
				t.Errorf("%s does not begin with make dev and %s", page, onPath)
			}
			// A reader comes minutes after the page before: its refunds' events have their places.
			if a := w.client(p).Get("/v1/events?limit=1"); a.Code != 200 {
				t.Fatalf("got %d %s", a.Code, a.Body)
			}
			t.Run(round+"/"+filepath.Base(page), func(t *testing.T) { follow(t, w, p, blocks) })
		}
	}
}

// follow does what a reader does who types every block.
func follow(t *testing.T, w *world, p *proc, blocks [][]string) {
	t.Helper()
	script, wants := "set -eu\n", []string{}
	for _, b := range blocks {
		if b[1] == "text" {
			wants[len(wants)-1] = b[2]
			continue
		}
		script += b[2] + "\necho; echo '" + blockEnd + "'\n"
		wants = append(wants, "")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	// Like a fresh clone after make dev: the program is in bin, and on no path until the guide puts
	// it there.
	cmd.Dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(cmd.Dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(cmd.Dir, "bin", "paidonce")); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
		"PAIDONCE_URL=" + p.url, "PAIDONCE_API_KEY=" + w.apiKey}, w.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	said := strings.Split(string(out), blockEnd)
	if len(said) != len(wants)+1 {
		t.Fatalf("%d blocks printed, of %d", len(said)-1, len(wants))
	}
	for i, want := range wants {
		rest := strings.ReplaceAll(said[i], "\r", "")
		for _, line := range strings.Split(strings.TrimSpace(want), "\n") {
			pattern := strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*")
			found := regexp.MustCompile(pattern).FindStringIndex(rest)
			if found == nil {
				t.Errorf("block %d does not print %q in its place; it prints\n%s", i+1, line,
					said[i])
				break
			}
			rest = rest[found[1]:]
		}
	}
}
