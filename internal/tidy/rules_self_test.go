package tidy

import (
	"go/token"
	"path"
	"strings"
	"testing"
)

// TestRulesFindWhatTheyForbid: a rule that finds nothing looks like a tidy source.
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
		{foreignImportsRule, "charges/a.go", `import _ "github.com/stripe/stripe-go/v76/client"`, true},
		{foreignImportsRule, "provider/stripe/a.go", `import _ "github.com/stripe/stripe-go/v76"`, false},
		{foreignImportsRule, "api/a.go", `import _ "github.com/jackc/pgx/v5/pgxpool"`, true},
		{foreignImportsRule, "api/apitest/a.go", `import _ "github.com/jackc/pgx/v5"`, true},
		{foreignImportsRule, "db/a_test.go", `import _ "github.com/pashagolub/pgxmock/v4"`, true},
		{domainKnowsNoHTTPRule, "charges/a.go", "import \"net/http\"\nvar _ http.Header", true},
		{domainKnowsNoHTTPRule, "charges/a.go", "import \"net/http\"\nvar _ = http.StatusOK", false},
		{sizesRule, "db/a.go", strings.Repeat("\n", longestFile), true},
		{sizesRule, "db/a.go", "func f() {" + long + "\n}", true},
		{sizesRule, "db/a.go", "func f() {" + long + "}", false},
		{sizesRule, "db/a_test.go", "func f() {" + long + "\n}", false},
		{clockRule, "charges/a.go", "import \"time\"\nvar _ = time.Now()", true},
		{clockRule, "charges/a.go", "import clock \"time\"\nvar _ = clock.Since(x)", true},
		{clockRule, "charges/a.go", "import \"time\"\nvar _ = time.Now() //tidy:clock", true},
		{clockRule, "charges/a.go", "import \"time\"\nvar _ = time.Now() //tidy:clock for a log line", false},
		{clockRule, "api/a.go", "import \"time\"\nvar _ = time.Now()", false},
		{sharedHTTPRule, "api/a.go", "import \"net/http\"\nvar _ = http.DefaultClient", true},
		{sharedHTTPRule, "api/a.go", "import \"net/http\"\nvar _ = http.Client{}", false},
		{outputRule, "api/a.go", "import \"log\"\nfunc f() { log.Printf(``) }", true},
		{outputRule, "api/a.go", "import \"fmt\"\nfunc f() { fmt.Println() }", true},
		{outputRule, "api/a.go", "import \"fmt\"\nvar _ = fmt.Sprint()", false},
		{noInitRule, "api/a.go", "func init() {}", true},
		{noInitRule, "api/a.go", "func (x) init() {}", false},
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
}
