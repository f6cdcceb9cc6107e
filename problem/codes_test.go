package problem_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"paidonce"
	"paidonce/problem"
)

// described reads the tables of docs/errors.md: rows of code, status, type, advice and when.
func described(t *testing.T) (rows [][]string) {
	t.Helper()
	doc, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(doc), "\n") {
		if cells := strings.Split(line, "|"); len(cells) == 7 && strings.Contains(cells[1], "`") {
			rows = append(rows, cells[1:6])
		}
	}
	return rows
}

func TestEveryCodeIsDescribed(t *testing.T) {
	rows := map[string]string{}
	for _, row := range described(t) {
		for i := range row {
			row[i] = strings.Trim(row[i], " `")
		}
		rows[row[1]+" "+row[0]] = row[2] + ", " + row[3]
	}
	for c := range problem.Codes() {
		if c == problem.ProviderRefused { // has the provider's name
			continue
		}
		name := fmt.Sprintf("%d %s", c.Status(), c)
		if is, says := c.Type()+", "+string(c.Advice()), rows[name]; is != says {
			t.Errorf("%s is %s; docs/errors.md says %q", name, is, says)
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("docs/errors.md describes %s, which does not exist, or twice", name)
	}
}

// The reference page lists the codes as docs/errors.md does, without their types.
func TestReferenceListsEveryCode(t *testing.T) {
	var want []string
	for _, row := range described(t) {
		want = append(want, fmt.Sprintf("|%s|%s| `%s` |%s|", row[0], row[1], strings.Trim(row[3], " `"), row[4]))
	}
	var spec struct{ Info struct{ Description string } }
	if err := yaml.Unmarshal(paidonce.OpenAPI, &spec); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.SplitSeq(spec.Info.Description, "\n") {
		if strings.HasPrefix(line, "| `") {
			got = append(got, line)
		}
	}
	if len(want) < 40 || !slices.Equal(got, want) {
		t.Errorf("the section Errors of openapi.yaml and docs/errors.md differ:\n%s\n\n%s",
			strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAdviceStatusAndRetryAgree(t *testing.T) {
	for c := range problem.Codes() {
		status, again := c.Status(), c.Advice() == problem.RetrySameKey
		retriable := status == 408 || status == 409 || status == 429 || status >= 500 && c != problem.OperationParked
		if again != retriable {
			t.Errorf(
				"%d %s: a client that goes by the status retries: %t; the advice is %s", status, c,
				retriable, c.Advice(),
			)
		}
		if after := c.New().RetryAfter; (status == 409 || status == 429 || status == 503) != (after > 0) {
			t.Errorf("%d %s: Retry-After is %v", status, c, after)
		}
		if c.New().Message == "" {
			t.Errorf("%d %s has no message", status, c)
		}
	}
}
