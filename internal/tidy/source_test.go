package tidy

import (
	"bytes"
	"errors"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "paidonce"

// root is the repository, seen from this package's folder, where its tests run.
const root = "../.."

// source is one Go file of the module.
type source struct {
	name   string // from the root, with slashes
	pkg    string // its folder from the root; "." for the root itself
	isTest bool
	text   []byte
	fset   *token.FileSet
	file   *ast.File
}

// position says where a node is, in a form that editors jump to.
func (s *source) position(at token.Pos) string {
	return s.name + ":" + strconv.Itoa(s.fset.Position(at).Line)
}

// line returns the text of the line that a position is on, for comments that grant an exception
// there.
func (s *source) line(at token.Pos) string {
	lines := bytes.Split(s.text, []byte("\n"))
	return string(lines[s.fset.Position(at).Line-1])
}

// granted reports whether the line carries the comment with a reason behind it.
func (s *source) granted(at token.Pos, comment string) bool {
	_, reason, ok := strings.Cut(s.line(at), "//tidy:"+comment)
	return ok && strings.HasPrefix(reason, " ") && strings.TrimSpace(reason) != ""
}

func (s *source) imports() []string {
	var all []string
	for _, spec := range s.file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// uses calls visit for each use of something that another package exports, as in http.Get.
func (s *source) uses(visit func(importPath, name string, at token.Pos)) {
	byName := map[string]string{}
	for _, spec := range s.file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		byName[name] = p
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && byName[x.Name] != "" {
				visit(byName[x.Name], sel.Sel.Name, sel.Pos())
			}
		}
		return true
	})
}

// sources parses the module's Go files once for all tests.
var sources = sync.OnceValues(func() ([]*source, error) {
	var all []*source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return enter(name)
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		s, err := load(name)
		if s != nil {
			all = append(all, s)
		}
		return err
	})
	return all, err
})

// enter returns filepath.SkipDir for a folder whose files are not of this module.
func enter(dir string) error {
	base := filepath.Base(dir)
	if dir == root {
		return nil
	}
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") ||
		slices.Contains([]string{"bin", "node_modules", "testdata"}, base) {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

// load returns nil for a file that no system ever compiles.
func load(name string) (*source, error) {
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return nil, err
	}
	rel = filepath.ToSlash(rel)
	s := &source{
		name: rel, pkg: path.Dir(rel), isTest: strings.HasSuffix(rel, "_test.go"),
		fset: token.NewFileSet(),
	}
	s.text, err = os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // removed while we walked
	}
	if err != nil {
		return nil, err
	}
	if err := s.parse(); err != nil || !compiles(s.file) {
		return nil, err
	}
	return s, nil
}

func (s *source) parse() (err error) {
	s.file, err = parser.ParseFile(s.fset, s.name, s.text,
		parser.ParseComments|parser.SkipObjectResolution)
	return err
}

// compiles reports whether a file's build constraint holds on any system that we build for.
func compiles(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if c.Pos() > file.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err != nil {
				return true
			}
			return slices.ContainsFunc([][]string{{"linux", "unix"}, {"darwin", "unix"},
				{"windows"}}, func(tags []string) bool {
				return expr.Eval(func(tag string) bool { return slices.Contains(tags, tag) })
			})
		}
	}
	return true
}

// reporter takes findings; t.Errorf is one.
type reporter func(format string, args ...any)

// each runs a rule over the Go files.
func each(t *testing.T, rule func(*source, reporter)) {
	t.Helper()
	all, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 { // with so few files we look in the wrong folder
		t.Fatalf("only %d Go files found", len(all))
	}
	for _, s := range all {
		rule(s, t.Errorf)
	}
}
