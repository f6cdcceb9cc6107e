package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"paidonce/outbox"
	"paidonce/provider/stripesim"
)

// alertRules is the part of deploy/prometheus/alerts.yaml that is checked.
type alertRules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

type dashboard struct {
	Title         string
	UID           string
	SchemaVersion int
	Panels        []struct {
		ID      int
		Type    string
		Title   string
		Targets []struct{ RefID, Expr string }
		GridPos struct{ H, W, X, Y int }
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func readAlerts(t *testing.T) (a alertRules) {
	t.Helper()
	if err := yaml.Unmarshal(readFile(t, "deploy/prometheus/alerts.yaml"), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal(readFile(t, "deploy/grafana/paidonce.json"), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// lived returns the metrics of a server that has done everything once.
func lived(t *testing.T) (*watched, samples) {
	t.Helper()
	w := newWatched(t, nil)
	w.app.metrics.Worker("reconcile")
	w.app.metrics.Worker("sweep")
	w.charge("a", visa, 201)
	w.charge("a", visa, 201)
	w.fault("POST", stripesim.Fault{Type: stripesim.DropAfter})
	w.charge("b", visa, 503)
	w.exec(`UPDATE idempotency_keys SET next_run_at = clock_timestamp() WHERE key = 'b'`)
	w.exec(`UPDATE idempotency_keys SET expires_at = clock_timestamp() WHERE key = 'a'`)
	w.pass(1)
	w.sweep(1)
	s := outbox.NewStream(w.app.events, &stream{}, w.app.log)
	w.app.metrics.Stream(s)
	if _, err := s.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w, w.scrape()
}

var (
	metricName = regexp.MustCompile(`\b(?:paidonce|go|process)_[a-z0-9_]+\b`)
	selector   = regexp.MustCompile(`\b((?:paidonce|go|process)_[a-z0-9_]+)(?:\{([^}]*)\})?`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	sampleName = regexp.MustCompile(`^([a-z_0-9]+)(?:\{(.*)\})?$`)
	label      = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
)

// labels returns the values of each label of each metric.
func (s samples) labels() map[string]map[string][]string {
	all := map[string]map[string][]string{}
	for sample := range s {
		m := sampleName.FindStringSubmatch(sample)
		if all[m[1]] == nil {
			all[m[1]] = map[string][]string{}
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			all[m[1]][l[1]] = append(all[m[1]][l[1]], l[2])
		}
	}
	return all
}

// ofPrometheus has the labels that a scrape adds.
var ofPrometheus = []string{"job", "instance"}

// checkExpr fails the test for each name in a PromQL expression that no server reports.
func checkExpr(t *testing.T, where, expr string, there map[string]map[string][]string) {
	t.Helper()
	for _, by := range regexp.MustCompile(
		`\b(?:by|without|on|ignoring) \(([^)]*)\)`).FindAllStringSubmatch(expr, -1) {
		for name := range strings.SplitSeq(by[1], ",") {
			if name = strings.TrimSpace(name); !slices.Contains(ofPrometheus, name) &&
				!slices.Contains(labelNames, name) {
				t.Errorf("%s groups by %s, which nothing has: %s", where, name, expr)
			}
		}
	}
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		values, known := there[s[1]]
		if !known {
			if s[1] != "go_version" { // a label
				t.Errorf("%s: there is no %s", where, s[1])
			}
			continue
		}
		for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
			if slices.Contains(ofPrometheus, m[1]) {
				continue
			}
			wanted := []string{m[3]}
			if strings.HasSuffix(m[2], "~") {
				wanted = strings.Split(m[3], "|")
			}
			for _, v := range wanted {
				if !slices.Contains(values[m[1]], v) {
					t.Errorf("%s: %s never has %s=%q", where, s[1], m[1], v)
				}
			}
		}
	}
}

// headings returns the anchors of a Markdown file.
func headings(text []byte) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(strings.ToLower(string(m[1])), " ", "-"))
	}
	return all
}

func TestAlertsAndDashboardShowWhatThereIs(t *testing.T) {
	t.Parallel()
	_, got := lived(t)
	there := got.labels()
	manual := readFile(t, "docs/operations.md")
	anchors := headings(manual)
	seen := 0
	for _, g := range readAlerts(t).Groups {
		for _, r := range g.Rules {
			seen++
			checkExpr(t, r.Alert, r.Expr, there)
			file, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "#")
			if file != "docs/operations.md" || anchor != strings.ToLower(r.Alert) ||
				!slices.Contains(anchors, anchor) {
				t.Errorf("%s: no runbook at %q", r.Alert, r.Annotations["runbook_url"])
			}
			if s := r.Labels["severity"]; s != "critical" && s != "warning" {
				t.Errorf("%s has severity %q", r.Alert, s)
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s says nothing", r.Alert)
			}
			if !metricName.MatchString(r.Expr) && !strings.HasPrefix(r.Expr, "up{") {
				t.Errorf("%s looks at none of our metrics", r.Alert)
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d alerts: not the file that was meant", seen)
	}
	// Every metric is documented, and every documented metric exists.
	for name := range there {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"),
			"_count")
		if strings.HasPrefix(base, "paidonce_") && !strings.Contains(string(manual), base) {
			t.Errorf("docs/operations.md does not mention %s", base)
		}
	}
	for _, name := range metricName.FindAllString(string(manual), -1) {
		_, plain := there[name]
		_, histogram := there[name+"_bucket"]
		if !plain && !histogram && name != "go_version" && name != "paidonce_operation" &&
			name != "paidonce_db_version" {
			t.Errorf("docs/operations.md mentions %s, which is not there", name)
		}
	}
	d := readDashboard(t)
	if d.Title == "" || d.UID == "" || d.SchemaVersion < 36 {
		t.Errorf("not a dashboard that can be imported: %q %q %d", d.Title, d.UID, d.SchemaVersion)
	}
	ids, shown := map[int]bool{}, ""
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q has id %d and the place %+v", p.Title, p.ID, p.GridPos)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 {
			t.Errorf("panel %q has no target", p.Title)
		}
		for _, target := range p.Targets {
			if target.Expr == "" || target.RefID == "" {
				t.Errorf("panel %q has an empty target", p.Title)
			}
			checkExpr(t, "panel "+p.Title, target.Expr, there)
			shown += target.Expr + "\n"
		}
	}
	for name := range there {
		if strings.HasPrefix(name, "paidonce_") && !strings.HasSuffix(name, "_sum") &&
			!strings.HasSuffix(name, "_count") && !strings.Contains(shown, name) {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// labelNames lists all labels. Each has a handful of values, all of our own making.
var labelNames = []string{
	"call", "commit", "driver", "outcome", "reason", "result", "route", "state", "stream", "table",
	"worker", "version", "revision", "go_version", "le", "quantile",
}

// seriesMax is far below what a Prometheus server can hold, and leaves room for some new routes.
const seriesMax = 2000

func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	w, first := lived(t)
	secretOrID := regexp.MustCompile(
		`(?i)sk_|whsec_|\b(ch|op|req|acct|key|evt|po)_[0-9A-Za-z]{8}|[0-9A-HJKMNP-TV-Z]{26}|postgres:|@|/v1/`)
	for sample := range first {
		m := sampleName.FindStringSubmatch(sample)
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(labelNames, l[1]) {
				t.Errorf("%s has the label %s", m[1], l[1])
			}
			if l[1] != "revision" && secretOrID.MatchString(l[2]) {
				t.Errorf("%s: %s=%q looks like a secret or an id", m[1], l[1], l[2])
			}
		}
	}
	if len(first) > seriesMax {
		t.Errorf("%d series", len(first))
	}
	// Nothing that clients invent makes a new series.
	for n := range 20 {
		key := fmt.Sprintf("key-%d", n)
		w.charge(key, strings.Replace(visa, "usd", []string{"usd", "eur"}[n%2], 1), 201)
		for _, path := range []string{"/v1/charges/ch_" + key, "/v1/" + key, "/" + key,
			"/v1/idempotency_keys/" + key} {
			w.do("GET", path, "", "")
		}
		w.do("MADEUP"+strings.Repeat("X", n), "/v1/charges", key, "")
	}
	ours := func(s samples) []string {
		return slices.Sorted(maps.Keys(maps.Collect(func(yield func(string, bool) bool) {
			for name := range s {
				if strings.HasPrefix(name, "paidonce_") && !yield(name, true) {
					return
				}
			}
		})))
	}
	if after := w.scrape(); !slices.Equal(ours(first), ours(after)) {
		t.Errorf("%d series, then %d", len(ours(first)), len(ours(after)))
	}
}
