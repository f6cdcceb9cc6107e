package tidy

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWordsOfComments: comments of Go are in plain words, and texts outside of tests, too.
func TestWordsOfComments(t *testing.T) { each(t, wordsRule) }

func wordsRule(s *source, report reporter) {
	if ast.IsGenerated(s.file) {
		return
	}
	for _, group := range s.file.Comments {
		at := s.fset.Position(group.Pos()).Line
		wrong(s.name, []text{{at, strings.Join(strings.Fields(group.Text()), " ")}}, report)
	}
	if s.isTest {
		return
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			wrong(s.name, []text{{s.fset.Position(l.Pos()).Line, l.Value}}, report)
		}
		return true
	})
}

// TestWidthOfComments: lines of Go with a comment are not wider than the screen.
func TestWidthOfComments(t *testing.T) { each(t, widthRule) }

func widthRule(s *source, report reporter) {
	if ast.IsGenerated(s.file) {
		return
	}
	all := strings.Split(string(s.text), "\n")
	for _, group := range s.file.Comments {
		if strings.HasPrefix(group.Text(), "Output:") || strings.HasPrefix(group.Text(), "Unordered output:") {
			continue
		}
		for _, c := range group.List {
			first, last := s.fset.Position(c.Pos()).Line, s.fset.Position(c.End()).Line
			for n := first; n <= last; n++ {
				line := all[n-1]
				_, comment, _ := strings.Cut(line, "//")
				preformatted := strings.HasPrefix(comment, "\t")
				directive := comment != "" && !strings.HasPrefix(comment, " ")
				start := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
				if width(line) > widest && !preformatted && !directive && breaks(line, start+"// ") {
					report("%s:%d: a comment wider than %d columns", s.name, n, widest)
				}
			}
		}
	}
}

// TestComments of SQL: plain words, and no wider than the screen.
func TestCommentsOfSQL(t *testing.T) {
	read := 0
	for _, name := range files(t) {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || filepath.Ext(name) != ".sql" {
			continue
		}
		read++
		comments, wide := sqlComments(content)
		wrong(name, comments, t.Errorf)
		for _, line := range wide {
			t.Errorf("%s:%d is wider than %d columns", name, line, widest)
		}
	}
	if read < 40 {
		t.Errorf("only %d files were read", read)
	}
}

// sqlComments are the comments that have lines of their own, and which of these lines are too wide.
func sqlComments(content []byte) (comments []text, wide []int) {
	for _, l := range lines(content) {
		comment, ok := strings.CutPrefix(strings.TrimSpace(l.words), "-- ")
		if !ok || strings.HasPrefix(comment, "name: ") || strings.HasPrefix(comment, "+goose") {
			continue
		}
		if width(l.words) > widest {
			wide = append(wide, l.line)
		}
		comments = append(comments, text{l.line, comment})
	}
	return joined(comments), wide
}
