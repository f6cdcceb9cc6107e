package tidy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fenced       = regexp.MustCompile("(?ms)^```.*?^```$")
	// placeNamed is a file in backticks and, in parentheses, what is in it.
	placeNamed = regexp.MustCompile("`([\\w/.]+\\.(?:go|sql|yaml|md))`(?: \\(((?:`\\w+`(?:, " +
		")?)+)\\))?")
)

// anchors are what links to a page may end in, made of its headings as code hosts do.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z':
				return r
			}
			return -1
		}, strings.ToLower(h[1]))
		all[anchor] = true
	}
	return all
}

// Every link in our pages to a page or file of the repository has a target.
func TestLinksOfTheDocs(t *testing.T) {
	pages := 0
	for _, name := range files(t) {
		if filepath.Ext(name) != ".md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // removed but not yet committed
		}
		pages++
		prose := fenced.ReplaceAllString(string(text), "")
		for _, link := range markdownLink.FindAllStringSubmatch(prose, -1) {
			file, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(file, "://") || strings.HasPrefix(file, "mailto:") {
				continue
			}
			to := filepath.Join(root, name)
			if file != "" {
				to = filepath.Join(root, filepath.Dir(name), file)
			}
			info, err := os.Stat(to)
			if err != nil {
				t.Errorf("%s: %s is not there", name, link[1])
				continue
			}
			if anchor == "" || info.IsDir() || filepath.Ext(to) != ".md" {
				continue
			}
			page, err := os.ReadFile(to)
			if err != nil {
				t.Fatal(err)
			}
			if !anchors(string(page))[anchor] {
				t.Errorf("%s: %s has no heading #%s", name, to, anchor)
			}
		}
	}
	if pages < 30 {
		t.Errorf("only %d pages were read", pages)
	}
}

// What "Where would I change …" in docs/architecture.md names is there: the files, and what is said
// to be in them.
func TestWhereToChangeIsThere(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Where would I change …\n")
	section, _, _ = strings.Cut(section, "\n## ")
	names := 0
	for _, found := range placeNamed.FindAllStringSubmatch(section, -1) {
		text, err := os.ReadFile(filepath.Join(root, found[1]))
		if err != nil {
			t.Errorf("%s is not there", found[1])
			continue
		}
		for _, name := range regexp.MustCompile(`\w+`).FindAllString(found[2], -1) {
			names++
			if !regexp.MustCompile(`\b` + name + `\b`).Match(text) {
				t.Errorf("%s has no %s", found[1], name)
			}
		}
	}
	if names < 30 {
		t.Errorf("only %d names were read", names)
	}
}
