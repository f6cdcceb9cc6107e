package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
		// the first line names the language
		if _, script, _ := strings.Cut(block, "\n"); i%2 == 1 &&
			strings.HasPrefix(script, "curl ") {
			blocks = append(blocks, script)
		}
	}
	return blocks
}

// decline is the token of a card that is declined: what is charged to it fails with a 402, on
// purpose.
const decline = "tok_chargeDeclined"

// chargeID is what a page calls ch_…: the charge of the last answer that had one.
var chargeID = regexp.MustCompile(`"(?:id|charge)":"(ch_[0-9A-Z]+)"`)

// The curl lines of README.md and docs/ work as they stand there, but for the addresses, the key
// and the charge. (TestGuides runs those of docs/guides/.)
func TestCurlLinesOfTheDocs(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip(err)
	}
	w := newWorld(t)
	p := w.serve()
	charge := "ch_…"
	run := func(command string) string {
		t.Helper()
		here := strings.NewReplacer("http://127.0.0.1:8080", p.url, "http://127.0.0.1:12111",
			w.sim.url, "sk_…", w.apiKey, "ch_…", charge)
		failing := "--fail"
		if strings.Contains(command, decline) {
			failing = "--fail-with-body"
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-euc", "curl() { command curl -sS "+
			failing+" \"$@\"; }\n"+here.Replace(command)).CombinedOutput()
		if declined := strings.Contains(string(out), `"code":"card_declined"`); (err != nil) != declined || declined != strings.Contains(command, decline) {
			t.Errorf("%s\n%v\n%s", command, err, out)
		}
		if found := chargeID.FindSubmatch(out); found != nil {
			charge = string(found[1])
		}
		return string(out)
	}
	readme := curls(t, "../README.md")
	if len(readme) < 4 {
		t.Fatalf("README.md has only %d such blocks", len(readme))
	}
	for i := range readme {
		var first string
		for _, command := range commands(readme[i]) {
			first = run(command)
		}
		if i > 0 {
			continue
		}
		// What README.md says about its first line.
		second := run(readme[i])
		_, made, _ := strings.Cut(first, "{")
		_, repeated, _ := strings.Cut(second, "{")
		if !strings.Contains(first, "201") || !strings.Contains(second,
			"Idempotent-Replayed: true") || made == "" || made != repeated {
			t.Errorf("the first time:\n%s\nthe second time:\n%s", first, second)
		}
	}
	if net := w.sim.net(); net != 2000+2000-500 {
		t.Errorf("README.md moves %d", net)
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

// commands are those of a block, each of which may have several lines.
func commands(block string) []string {
	return strings.Split(strings.TrimSpace(regexp.MustCompile(`\n(curl )`).ReplaceAllString(block,
		"\x00$1")), "\x00")
}

// Every setting is in docs/settings.md with its default, and README.md tells of none that does not
// exist.
func TestSettingsAreDescribed(t *testing.T) {
	t.Parallel()
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	defaults := map[string]string{}
	for _, found := range regexp.MustCompile("`env:\"(\\w+)\"[^`]*`").FindAllStringSubmatch(
		read("../cmd/paidonce/config.go"), -1) {
		_, value, _ := strings.Cut(found[0], `envDefault:"`)
		defaults[found[1]] = strings.TrimRight(value, "`\"")
	}
	name := regexp.MustCompile("`([A-Z][A-Z_]+)`")
	described := map[string]bool{}
	for _, file := range []string{"../docs/settings.md", "../README.md"} {
		rows := 0
		for _, line := range strings.Split(read(file), "\n") {
			cells := strings.Split(line, "|")
			if len(cells) < 5 || !strings.HasPrefix(line, "| `") {
				continue
			}
			rows++
			for _, found := range name.FindAllStringSubmatch(cells[1], -1) {
				value, exists := defaults[found[1]]
				if !exists {
					t.Errorf("%s: there is no setting %s", file, found[1])
				}
				if value != "" && !strings.Contains(cells[2], "`"+value+"`") {
					t.Errorf("%s: the default of %s is %s, not %s", file, found[1], value, cells[2])
				}
				described[found[1]] = described[found[1]] || strings.HasSuffix(file, "settings.md")
			}
		}
		if rows < 5 {
			t.Errorf("%s: only %d rows were read", file, rows)
		}
	}
	for setting := range defaults {
		if !described[setting] {
			t.Errorf("docs/settings.md lacks %s", setting)
		}
	}
}
