package tidy

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

const (
	// longestFile and longestFunction are in lines: a file that is read in one go, a function that
	// fits a screen.
	longestFile     = 400
	longestFunction = 70
)

func TestSizes(t *testing.T) { each(t, sizesRule) }

func sizesRule(s *source, report reporter) {
	if s.isTest || ast.IsGenerated(s.file) {
		return
	}
	if n := strings.Count(string(s.text), "\n"); n > longestFile {
		report("%s has %d lines, more than %d", s.name, n, longestFile)
	}
	for _, decl := range s.file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		lines := s.fset.Position(f.Body.Rbrace).Line - s.fset.Position(f.Body.Lbrace).Line - 1
		if lines > longestFunction {
			report("%s: %s has %d lines, more than %d", s.position(f.Pos()), f.Name.Name, lines,
				longestFunction)
		}
	}
}

// TestClock checks that staleness, expiry and windows are decided by the database's clock, of which
// there is one.
func TestClock(t *testing.T) { each(t, clockRule) }

func clockRule(s *source, report reporter) {
	decides := []string{"charges", "idemkeys", "recovery"}
	if s.isTest || !slices.Contains(decides, s.pkg) {
		return
	}
	s.uses(func(importPath, name string, at token.Pos) {
		if importPath == "time" && slices.Contains([]string{"Now", "Since", "Until"}, name) &&
			!s.granted(at, "clock") {
			report("%s: time.%s: decide in SQL (//tidy:clock and a reason grants an exception)",
				s.position(at), name)
		}
	})
}

// TestSharedHTTP forbids the default HTTP client and transport: the client has no time limit, and
// whoever changes the transport changes it for all.
func TestSharedHTTP(t *testing.T) { each(t, sharedHTTPRule) }

func sharedHTTPRule(s *source, report reporter) {
	shared := []string{
		"DefaultClient", "DefaultTransport", "DefaultServeMux", "Get", "Head", "Post", "PostForm",
		"Handle", "HandleFunc",
	}
	table, _ := packageTable() // its errors are those of TestImportTable
	if s.isTest || table[s.inTable()].forTests {
		return
	}
	s.uses(func(importPath, name string, at token.Pos) {
		if importPath == "net/http" && slices.Contains(shared, name) && !s.granted(at, "http") {
			report("%s: http.%s is shared by everybody (//tidy:http and a reason grants an "+
				"exception)", s.position(at), name)
		}
	})
}

// TestOutput checks that packages log through the slog logger that they are given; only programs
// print.
func TestOutput(t *testing.T) { each(t, outputRule) }

func outputRule(s *source, report reporter) {
	if s.isTest || s.file.Name.Name == "main" {
		return
	}
	s.uses(func(importPath, name string, at token.Pos) {
		switch {
		case importPath == "log":
			report("%s: log.%s: use the slog.Logger that you are given", s.position(at), name)
		case importPath == "fmt" && strings.HasPrefix(name, "Print"):
			report("%s: fmt.%s: only programs print", s.position(at), name)
		case importPath == "os" && name == "Exit" && !s.granted(at, "exit"):
			report("%s: os.Exit: only programs end", s.position(at))
		}
	})
}

// TestNoInit forbids init functions: what happens before main happens unseen.
func TestNoInit(t *testing.T) { each(t, noInitRule) }

func noInitRule(s *source, report reporter) {
	if s.isTest {
		return
	}
	for _, decl := range s.file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if ok && f.Recv == nil && f.Name.Name == "init" && !s.granted(f.Pos(), "init") {
			report("%s: init (//tidy:init and a reason grants an exception)", s.position(f.Pos()))
		}
	}
}
