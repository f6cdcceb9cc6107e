package tidy

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// widest is the width of comments and prose in columns, a tab being four: two files fit beside each
// other on a screen.
const widest = 100

// plainer has phrases that are always wrong, and what to write instead. docs/architecture.md has
// the words to use.
var plainer = []struct {
	phrase  *regexp.Regexp
	instead string
}{
	{phrase(`tells (?:whether|how|what|when|where|which|why)`), "reports, says, or returns"},
	{phrase(`for who`), "for whoever, or name them"},
	{phrase(`(?:held|hold|holds) (?:(?:it|them|both) )?against`), "compared with, or checked against"},
	{phrase(`for ever`), "forever"},
	{phrase(`(?:comes?|came|coming) true`), "occurs, or happens"},
	{phrase(`in company`), "together, or in one statement"},
	{phrase(`a person`), "an operator"},
	{phrase(`(?:the|provider's) books`), "the provider's records"},
	{phrase(`provider's news`), "provider events"},
	{phrase(`mend(?:ed|s|ing)?`), "fix, or repair"},
	{phrase(`at most so many`), "at most N"},
	{phrase(`as above`), "a whole sentence"},
}

// phrase matches whole words, in upper or lower case.
func phrase(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b` + pattern + `\b`) }

// text is prose of a file: a line, or lines that a sentence runs through.
type text struct {
	line  int // the first, from 1
	words string
}

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	// listItem is how an item of a list begins, in Markdown and in comments.
	listItem = regexp.MustCompile(`^\s*(?:[-*•] |\d+\. )`)
)

// wrong calls report for each phrase of prose that is to be plainer.
func wrong(name string, prose []text, report reporter) {
	for _, p := range prose {
		for _, w := range plainer {
			if found := w.phrase.FindString(p.words); found != "" {
				report("%s:%d: %q: write %s", name, p.line, found, w.instead)
			}
		}
	}
}

// TestWords: comments, pages and descriptions are in plain words.
func TestWords(t *testing.T) {
	read := 0
	for _, name := range files(t) {
		if name == "docs/openapi.released.yaml" || vendored(name) { // the former is a copy
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // removed but not yet committed
		}
		var prose []text
		switch filepath.Ext(name) {
		case ".md":
			prose = pageProse(content)
		case ".yaml":
			prose = lines(content)
		default:
			continue
		}
		read++
		wrong(name, prose, t.Errorf)
	}
	if read < 40 {
		t.Errorf("only %d files were read", read)
	}
}

// TestWidthOfPages: prose of pages is not wider than the screen. Tables, code, and what has no
// blank to break at, may be.
func TestWidthOfPages(t *testing.T) {
	for _, name := range files(t) {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || filepath.Ext(name) != ".md" || vendored(name) {
			continue
		}
		for _, line := range tooWide(content) {
			t.Errorf("%s:%d is wider than %d columns", name, line, widest)
		}
	}
}

// tooWide are the lines of a page's prose that should be broken, from 1.
func tooWide(page []byte) (wide []int) {
	code := false
	for i, line := range strings.Split(string(page), "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		code = code != fence
		if code || fence || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#") {
			continue
		}
		if width(line) > widest && breaks(line, listItem.FindString(line)) {
			wide = append(wide, i+1)
		}
	}
	return wide
}

// width is in columns.
func width(line string) int {
	return utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
}

// breaks reports whether a wide line has a blank, after its beginning, where it could be broken.
func breaks(line, beginning string) bool {
	head := []rune(strings.ReplaceAll(line[len(beginning):], "\t", "    "))
	head = head[:min(len(head), max(0, widest-width(beginning))+1)]
	return strings.Contains(strings.TrimSpace(string(head)), " ")
}

// pageProse are the paragraphs and rows of a page, without code and the targets of links.
func pageProse(page []byte) []text {
	plain := fenced.ReplaceAllFunc(page, func(code []byte) []byte {
		return bytes.Repeat([]byte("\n"), bytes.Count(code, []byte("\n"))) // so that lines stay
	})
	var prose []text
	for _, l := range lines(plain) {
		l.words = inlineCode.ReplaceAllString(l.words, "`")
		l.words = strings.TrimSpace(linkTarget.ReplaceAllString(l.words, "]"))
		prose = append(prose, l)
	}
	return joined(prose)
}

// lines are all lines of a file.
func lines(content []byte) (all []text) {
	for i, line := range strings.Split(string(content), "\n") {
		all = append(all, text{i + 1, line})
	}
	return all
}

// joined makes one text of lines that follow each other, up to an empty one.
func joined(lines []text) (all []text) {
	last := -2
	for _, l := range lines {
		switch {
		case l.words == "":
		case last == l.line-1:
			all[len(all)-1].words += " " + l.words
			last = l.line
		default:
			all = append(all, l)
			last = l.line
		}
	}
	return all
}

// vendored reports whether others wrote a file.
func vendored(name string) bool { return strings.HasPrefix(name, "docs/reference/redoc/") }
