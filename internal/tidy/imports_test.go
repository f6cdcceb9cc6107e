package tidy

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// anything in place of a list: the package is where all is put together.
var anything = []string{"*"}

// mayImport is the table of docs/architecture.md: which of our packages a package may import. Tests are free to import more.
var mayImport = map[string][]string{
	".":                     {},
	"accounts":              {"db"},
	"api":                   {"accounts", "charges", "idemkeys", "inbox", "outbox"},
	"api/apitest":           {"api"},
	"bench":                 {"internal/devpg"}, // it measures the product from outside
	"charges":               {"db", "history", "idemkeys", "outbox", "provider"},
	"cmd/paidonce":          anything,
	"db":                    {},
	"docs/reference":        {},
	"examples/consumer":     {},     // it knows of us what is documented
	"history":               {"db"}, // not charges: the books are handed to it
	"idemkeys":              {"db"},
	"inbox":                 {"db", "provider"},
	"internal/dbtest":       {"db", "internal/devpg"},
	"internal/devpg":        {},
	"internal/tidy":         {},
	"metrics":               {"api", "charges", "db", "idemkeys", "inbox", "outbox", "outbox/receipt", "provider", "recovery"}, // it knows what it measures; none of it knows metrics
	"outbox":                {"db"},
	"outbox/publish":        {"outbox"},
	"outbox/receipt":        {"db"},
	"outbox/webhook":        {"outbox"},
	"provider":              {},
	"provider/providertest": {"provider"},
	"provider/stripe":       {"provider"},
	"provider/stripesim":    {"provider"},
	"recovery":              {"db", "idemkeys"}, // not charges: an `if charge` there is a bug
	"sdk/python/generate":   {},
}

// forTests are the packages that serve tests; no program contains them.
var forTests = []string{"api/apitest", "internal/dbtest", "provider/providertest"}

func TestImportTable(t *testing.T) { each(t, importTableRule) }

func importTableRule(s *source, report reporter) {
	if s.isTest {
		return
	}
	allowed, known := mayImport[s.pkg]
	if !known {
		report("%s: package %s is not in the table of imports: add it here and in docs/architecture.md", s.name, s.pkg)
		return
	}
	for _, imported := range s.imports() {
		ours, ok := strings.CutPrefix(imported, module+"/")
		if !ok {
			continue
		}
		if slices.Contains(forTests, ours) {
			report("%s imports %s, which is for tests", s.name, ours)
		} else if !slices.Equal(allowed, anything) && !slices.Contains(allowed, ours) {
			report("%s: %s may not import %s", s.name, s.pkg, ours)
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
			report("%s imports %s: tests run on PostgreSQL, a mock of it proves nothing", s.name, imported)
		}
		if s.isTest {
			continue
		}
		if under(imported, "github.com/stripe/stripe-go") || strings.HasPrefix(imported, "github.com/stripe/stripe-go/") {
			if s.pkg != "provider/stripe" && s.pkg != "inbox" {
				report("%s: Stripe's SDK stays in provider/stripe, and inbox for signatures", s.name)
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
		if importPath == "net/http" && !strings.HasPrefix(name, "Status") && !s.granted(at, "http") {
			report("%s: %s knows no HTTP but status codes (//tidy:http and a reason grants an exception)", s.position(at), s.pkg)
		}
	})
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
	vague := []string{"common", "helper", "helpers", "models", "repository", "service", "services", "types", "util", "utils"}
	for pkg, name := range names {
		if !documented[pkg] {
			t.Errorf("%s: no file of the package says what it is for", pkg)
		}
		if slices.Contains(vague, name) {
			t.Errorf("%s: the name %s says nothing", pkg, name)
		}
	}
}
