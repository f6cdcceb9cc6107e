package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// may is what the table of packages in docs/architecture.md allows a package.
type may struct {
	importOf []string // ours
	any      bool     // it may import anything, because it puts the program together
	forTests bool     // no program contains it
}

// packageTable reads that table once for all tests.
var packageTable = sync.OnceValues(func() (map[string]may, error) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		return nil, err
	}
	return readPackages(string(page))
})

var (
	// packageRow is a row of the table: the package, what it is, what it imports.
	packageRow = regexp.MustCompile("(?m)^\\| `([\\w/]+)` \\| (.+) \\| (–|any|`[\\w/]+`(?:, " +
		"`[\\w/]+`)*) \\|$")
	packageName = regexp.MustCompile(`[\w/]+`)
)

func readPackages(page string) (map[string]may, error) {
	_, section, _ := strings.Cut(page, "\n## Packages\n")
	section, _, _ = strings.Cut(section, "\n## ")
	table := map[string]may{}
	for _, row := range packageRow.FindAllStringSubmatch(section, -1) {
		m := may{any: row[3] == "any", forTests: strings.HasPrefix(row[2], "for tests:")}
		if !m.any {
			m.importOf = packageName.FindAllString(row[3], -1)
		}
		if _, twice := table[row[1]]; twice {
			return nil, fmt.Errorf("the package %s is in the table twice", row[1])
		}
		table[row[1]] = m
	}
	// The head of the table is two rows.
	if rows := strings.Count(section, "\n|") - 2; rows != len(table) || rows < 20 {
		return nil, fmt.Errorf("%d of the %d rows of packages in docs/architecture.md can be read",
			len(table), rows)
	}
	return table, nil
}

// ours is the name in the table of an imported package, if it is one of ours.
func ours(imported string) (string, bool) {
	if imported == module {
		return module, true
	}
	return strings.CutPrefix(imported, module+"/")
}

// inTable is the name of a source's package in the table.
func (s *source) inTable() string {
	if s.pkg == "." {
		return module
	}
	return s.pkg
}

func TestImportTable(t *testing.T) { each(t, importTableRule) }

func importTableRule(s *source, report reporter) {
	table, err := packageTable()
	if err != nil {
		report("%v", err)
		return
	}
	allowed, known := table[s.inTable()]
	if !known {
		report("%s: the package %s is not in the table of packages in docs/architecture.md", s.name,
			s.inTable())
		return
	}
	if s.isTest {
		return
	}
	for _, imported := range s.imports() {
		name, ok := ours(imported)
		if !ok {
			continue
		}
		if table[name].forTests && !allowed.forTests {
			report("%s imports %s, which is for tests", s.name, name)
		} else if !allowed.any && !slices.Contains(allowed.importOf, name) {
			report("%s: %s may not import %s", s.name, s.inTable(), name)
		}
	}
}

// TestImportTableHasNothingUnused checks that every permission in the table is used.
func TestImportTableHasNothingUnused(t *testing.T) {
	table, err := packageTable()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string][]string{}
	each(t, func(s *source, _ reporter) {
		names := used[s.inTable()]
		if !s.isTest {
			names = append(names, s.imports()...)
		}
		used[s.inTable()] = names
	})
	for name, m := range table {
		imports, there := used[name]
		if !there {
			t.Errorf("the table in docs/architecture.md has a package %s, which is not there", name)
		}
		for _, other := range m.importOf {
			if !slices.ContainsFunc(imports, func(path string) bool {
				n, ok := ours(path)
				return ok && n == other
			}) {
				t.Errorf("the table in docs/architecture.md lets %s import %s, which it does not",
					name, other)
			}
		}
	}
}

func TestTableOfPackagesIsReadWhole(t *testing.T) {
	row := "| `a/b` | what it is | `db`, `c` |\n"
	page := func(rows string) string {
		return "\n## Packages\n\n| package | x | y |\n|---|---|---|\n" + rows + "\n## The lease\n"
	}
	many := ""
	for n := range 20 {
		many += fmt.Sprintf("| `p%d` | for tests: a | – |\n", n)
	}
	table, err := readPackages(page(many + row))
	if err != nil || !slices.Equal(table["a/b"].importOf, []string{"db", "c"}) ||
		!table["p1"].forTests || table["p1"].importOf != nil {
		t.Errorf("%v, %v", table, err)
	}
	for _, broken := range []string{"", row, many + row + row,
		many + "| `a` | what | `db`; and more |\n"} {
		if _, err := readPackages(page(broken)); err == nil {
			t.Errorf("read without an error: %q", broken)
		}
	}
}

func TestForeignImports(t *testing.T) { each(t, foreignImportsRule) }

func foreignImportsRule(s *source, report reporter) {
	under := func(imported, prefix string) bool {
		return imported == prefix || strings.HasPrefix(imported, prefix+"/")
	}
	for _, imported := range s.imports() {
		if strings.Contains(imported, "pgxmock") || strings.Contains(imported, "sqlmock") {
			report("%s imports %s: tests run on PostgreSQL, a mock of it proves nothing", s.name,
				imported)
		}
		if s.isTest {
			continue
		}
		if under(imported, "github.com/stripe/stripe-go") ||
			strings.HasPrefix(imported, "github.com/stripe/stripe-go/") {
			if s.pkg != "provider/stripe" && s.pkg != "inbox" {
				report("%s: Stripe's SDK stays in provider/stripe, and inbox for signatures",
					s.name)
			}
		}
		if strings.HasPrefix(imported, "github.com/prometheus/") && s.pkg != "metrics" {
			report("%s: Prometheus stays in metrics", s.name)
		}
		if under(s.pkg, "api") && under(imported, "github.com/jackc/pgx/v5") {
			report("%s: the HTTP edge knows no database", s.name)
		}
	}
}

// TestDomainKnowsNoHTTP allows status codes: the stored answer of an operation has one.
func TestDomainKnowsNoHTTP(t *testing.T) { each(t, domainKnowsNoHTTPRule) }

func domainKnowsNoHTTPRule(s *source, report reporter) {
	domain := []string{"accounts", "charges", "db", "idemkeys", "outbox", "provider", "recovery"}
	if s.isTest || !slices.Contains(domain, s.pkg) {
		return
	}
	s.uses(func(importPath, name string, at token.Pos) {
		if importPath == "net/http" && !strings.HasPrefix(name, "Status") &&
			!s.granted(at, "http") {
			report("%s: %s knows no HTTP but status codes (//tidy:http and a reason grants an "+
				"exception)", s.position(at), s.pkg)
		}
	})
}

// TestTheTableOfPhasesIsOnTop checks that phases.go only combines what the other files define, and
// that none of them needs it.
func TestTheTableOfPhasesIsOnTop(t *testing.T) { each(t, phasesOnTopRule) }

func phasesOnTopRule(s *source, report reporter) {
	declared := func(d ast.Decl) bool { // Kinds is all that the file declares
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Recv == nil && f.Name.Name == "Kinds"
	}
	switch {
	case s.isTest || s.pkg != "charges":
	case s.name == "charges/phases.go":
		for _, d := range s.file.Decls {
			if g, ok := d.(*ast.GenDecl); !declared(d) && (!ok || g.Tok != token.IMPORT) {
				report("%s: the table stands alone in its file", s.position(d.Pos()))
			}
		}
	default:
		ast.Inspect(s.file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.Name == "Kinds" && !isSelected(s.file, id) {
				report("%s: nothing in charges refers to the table of phases", s.position(id.Pos()))
			}
			return true
		})
	}
}

// isSelected reports whether an identifier is the name of a field: p.Kinds is another than Kinds.
func isSelected(f *ast.File, id *ast.Ident) (selected bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel == id {
			selected = true
		}
		return !selected
	})
	return selected
}

func TestPackageDocs(t *testing.T) {
	documented, names := map[string]bool{}, map[string]string{}
	each(t, func(s *source, _ reporter) {
		if s.isTest {
			return
		}
		names[s.pkg] = s.file.Name.Name
		if s.file.Doc != nil && !ast.IsGenerated(s.file) {
			documented[s.pkg] = true
		}
	})
	vague := []string{
		"common", "helper", "helpers", "models", "repository", "service", "services", "types",
		"util", "utils",
	}
	for pkg, name := range names {
		if !documented[pkg] {
			t.Errorf("%s: no file of the package says what it is for", pkg)
		}
		if slices.Contains(vague, name) {
			t.Errorf("%s: the name %s says nothing", pkg, name)
		}
	}
}
