package tidy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testFunc  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	testNamed = regexp.MustCompile("`(Test\\w+)`")
)

// Each row of docs/provider-states.md names tests that exist.
func TestProviderStatesNameTests(t *testing.T) {
	tests := map[string]bool{}
	for _, name := range files(t) {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // removed but not yet committed
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/provider-states.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| object ") {
			continue
		}
		rows++
		cells := strings.Split(strings.TrimSpace(line), " | ")
		named := testNamed.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(cells) != 4 || len(named) == 0 {
			t.Errorf("a row does not end with a test: %s", line)
		}
		for _, m := range named {
			if !tests[m[1]] {
				t.Errorf("there is no %s, which a row names: %s", m[1], line)
			}
		}
	}
	if rows < 15 {
		t.Errorf("only %d rows were read", rows)
	}
}
