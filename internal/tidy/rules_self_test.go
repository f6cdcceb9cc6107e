package tidy

import (
	"go/token"
	"path"
	"strings"
	"testing"
)

// TestRulesFindWhatTheyForbid checks the rules themselves: a rule that finds nothing looks like a
// tidy source.
func TestRulesFindWhatTheyForbid(t *testing.T) {
	long := strings.Repeat("\n", longestFunction+1)
	for _, c := range []struct {
		rule func(*source, reporter)
		file string
		code string
		want bool // whether it finds something
	}{
		{importTableRule, "recovery/a.go", `import _ "paidonce/charges"`, true},
		{importTableRule, "recovery/a.go", `import _ "paidonce/idemkeys"`, false},
		{importTableRule, "recovery/a_test.go", `import _ "paidonce/charges"`, false},
		{importTableRule, "surprise/a.go", ``, true},
		{importTableRule, "cmd/paidonce/a.go", `import _ "paidonce/charges"`, false},
		{importTableRule, "cmd/paidonce/a.go", `import _ "paidonce/internal/dbtest"`, true},
		{
			foreignImportsRule, "charges/a.go", `import _ "github.com/stripe/stripe-go/v76/client"`,
			true,
		},
		{
			foreignImportsRule, "provider/stripe/a.go",
			`import _ "github.com/stripe/stripe-go/v76"`, false,
		},
		{foreignImportsRule, "api/a.go", `import _ "github.com/jackc/pgx/v5/pgxpool"`, true},
		{foreignImportsRule, "api/apitest/a.go", `import _ "github.com/jackc/pgx/v5"`, true},
		{foreignImportsRule, "db/a_test.go", `import _ "github.com/pashagolub/pgxmock/v4"`, true},
		{domainKnowsNoHTTPRule, "charges/a.go", "import \"net/http\"\nvar _ http.Header", true},
		{
			domainKnowsNoHTTPRule, "charges/a.go", "import \"net/http\"\nvar _ = http.StatusOK",
			false,
		},
		{phasesOnTopRule, "charges/a.go", "var _ = Kinds(p, s, cfg)", true},
		{phasesOnTopRule, "charges/a.go", "var _ = p.Kinds", false},
		{phasesOnTopRule, "charges/phases.go", "const more = 1", true},
		{
			phasesOnTopRule, "charges/phases.go",
			"import \"context\"\nfunc Kinds(context.Context) {}", false,
		},
		{sizesRule, "db/a.go", strings.Repeat("\n", longestFile), true},
		{sizesRule, "db/a.go", "func f() {" + long + "\n}", true},
		{sizesRule, "db/a.go", "func f() {" + long + "}", false},
		{sizesRule, "db/a_test.go", "func f() {" + long + "\n}", false},
		{clockRule, "charges/a.go", "import \"time\"\nvar _ = time.Now()", true},
		{clockRule, "charges/a.go", "import clock \"time\"\nvar _ = clock.Since(x)", true},
		{clockRule, "charges/a.go", "import \"time\"\nvar _ = time.Now() //tidy:clock", true},
		{
			clockRule, "charges/a.go",
			"import \"time\"\nvar _ = time.Now() //tidy:clock for a log line", false,
		},
		{clockRule, "api/a.go", "import \"time\"\nvar _ = time.Now()", false},
		{sharedHTTPRule, "api/a.go", "import \"net/http\"\nvar _ = http.DefaultClient", true},
		{sharedHTTPRule, "api/a.go", "import \"net/http\"\nvar _ = http.Client{}", false},
		{outputRule, "api/a.go", "import \"log\"\nfunc f() { log.Printf(``) }", true},
		{outputRule, "api/a.go", "import \"fmt\"\nfunc f() { fmt.Println() }", true},
		{outputRule, "api/a.go", "import \"fmt\"\nvar _ = fmt.Sprint()", false},
		{noInitRule, "api/a.go", "func init() {}", true},
		{noInitRule, "api/a.go", "func (x) init() {}", false},
		{wordsRule, "api/a.go", "// f tells\n// whether.\nfunc f() {}", true},
		{wordsRule, "api/a.go", "// f reports whether.\nfunc f() {}", false},
		{wordsRule, "api/a.go", "var _ = `kept for ever`", true},
		{wordsRule, "api/a_test.go", "var _ = `kept for ever`", false},
		{widthRule, "api/a.go", "// " + strings.Repeat("word ", widest/5) + "more", true},
		{widthRule, "api/a.go", "// " + strings.Repeat("x", widest), false},
		{widthRule, "api/a.go", "var a = 1 // " + strings.Repeat("word ", widest/5), true},
		{widthRule, "api/a.go", "//\t" + strings.Repeat("word ", widest/5), false},
	} {
		s := &source{
			name: c.file, pkg: path.Dir(c.file), isTest: strings.HasSuffix(c.file, "_test.go"),
			text: []byte("package p\n" + c.code), fset: token.NewFileSet(),
		}
		if err := s.parse(); err != nil {
			t.Fatalf("%s: %v", c.code, err)
		}
		found := false
		c.rule(s, func(string, ...any) { found = true })
		if found != c.want {
			t.Errorf("in %s, finds something: %t, want %t:\n%.80s", c.file, found, c.want, c.code)
		}
	}
	for line, want := range map[string]bool{
		"see /wo" + "rk/main":             true,
		`dir := "/ro` + `ot/go"`:          true,
		"*/ro" + "ot/, a/ro" + "ot/b":     false,
		"https://proxy." + "golang.org/x": true,
		"/home/" + "anna/src":             true,
		"docs/work/plan.md":               false,
		"/home/linuxbrew/.linuxbrew":      false,
	} {
		if got := machinePath(line) != ""; got != want {
			t.Errorf("%q belongs to one machine: %t, want %t", line, got, want)
		}
	}
	for line, want := range map[string]bool{
		"// Tr" + "ap 12: late answers": true,
		"// late answers, P" + "B-031":  true,
		"// traps that are described":   false,
	} {
		if got := mark.MatchString(line); got != want {
			t.Errorf("%q has a mark of another document: %t, want %t", line, got, want)
		}
	}
}

// TestRulesOfWordsFindWhatTheyForbid: the same for pages.
func TestRulesOfWordsFindWhatTheyForbid(t *testing.T) {
	long := strings.Repeat("word ", widest/5)
	for page, want := range map[string]bool{
		"It tells whether it is.":                   true,
		"It tells\nwhether it is.":                  true,
		"It tells\n\nwhether it is.":                false,
		"What tells them apart is the key.":         false,
		"Kept FOR EVER":                             true,
		"| kept | for ever |":                       true,
		"`for ever`":                                false,
		"```\nfor ever\n```":                        false,
		"[books](the-provider's-books.md)":          false,
		"It is checked against the provider's news": true,
		"It is in the books.":                       true,
		"The result is `books differ`.":             false,
		"It waits for a person.":                    true,
		"It is a personal key.":                     false,
	} {
		found := false
		wrong("a.md", pageProse([]byte(page)), func(string, ...any) { found = true })
		if found != want {
			t.Errorf("%q is found wrong: %t, want %t", page, found, want)
		}
	}
	for page, want := range map[string]bool{
		long + "and more":                    true,
		long + "y":                           true,
		long:                                 false,
		strings.TrimSpace(long) + "y":        false,
		"- " + long:                          true,
		"- " + strings.Repeat("x", 2*widest): false,
		"| " + long + "|":                    false,
		"# " + long:                          false,
		"```\n" + long + "\n```":             false,
	} {
		if got := len(tooWide([]byte(page))) > 0; got != want {
			t.Errorf("%q is found too wide: %t, want %t", page, got, want)
		}
	}
}

// TestRulesOfSQLFindWhatTheyForbid: the same for comments of SQL.
func TestRulesOfSQLFindWhatTheyForbid(t *testing.T) {
	long := strings.Repeat("word ", widest/5)
	comments, wide := sqlComments([]byte("-- name: A :one\n-- Kept for\n-- ever.\nSELECT 'in company'\n-- " + long))
	found := 0
	wrong("a.sql", comments, func(string, ...any) { found++ })
	if found != 1 || len(wide) != 1 || wide[0] != 5 {
		t.Errorf("%d phrases and the lines %v were found, want 1 and the fifth", found, wide)
	}
}
