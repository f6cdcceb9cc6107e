package reference

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v4"

	"paidonce"
	"paidonce/internal/browser"
)

func TestParts(t *testing.T) {
	t.Parallel()
	const teapot = http.StatusTeapot // the rest
	h := Handler([]byte("openapi: 3.0.3\n"),
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(teapot) }))
	for path, want := range map[string]int{
		"/docs": 200, "/docs/openapi.yaml": 200, "/openapi.yaml": 200, "/docs/redoc.js": 200,
		"/docs/": 308, "/docs/index.html": teapot, "/docs/redoc/LICENSE": teapot,
		"/": teapot, "/docsx": teapot,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want || want == 200 && w.Header().Get("X-Content-Type-Options") != "nosniff" ||
			want == 308 && w.Header().Get("Location") != Path {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/docs", nil))
	if w.Code != teapot {
		t.Errorf("POST: %d %v", w.Code, w.Header())
	}
}

// The page of this folder, which a code host shows, lists the operations of openapi.yaml in its
// order.
func TestOperationsAreListed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var spec struct{ Paths yaml.Node }
	if err := yaml.Unmarshal(paidonce.OpenAPI, &spec); err != nil {
		t.Fatal(err)
	}
	var want, got []string
	// path and item alternate; so do method and operation
	for i := 0; i < len(spec.Paths.Content); i += 2 {
		methods := spec.Paths.Content[i+1].Content
		for j := 0; j < len(methods); j += 2 {
			var op struct{ Summary string }
			if err := methods[j+1].Decode(&op); err != nil {
				t.Fatal(err)
			}
			method := strings.ToUpper(methods[j].Value)
			want = append(want, "| `"+method+" "+spec.Paths.Content[i].Value+"` | "+op.Summary+" |")
		}
	}
	for line := range strings.SplitSeq(string(page), "\n") {
		if strings.HasPrefix(line, "| `") {
			got = append(got, line)
		}
	}
	if len(want) < 15 || !slices.Equal(got, want) {
		t.Errorf("README.md lists\n%s\nopenapi.yaml has\n%s",
			strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A real browser shows the operations, and asks for nothing but the page's own parts.
func TestInABrowser(t *testing.T) {
	t.Parallel()
	program := browser.Find(t)
	description, err := os.ReadFile("../../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked := map[string]bool{}
	pages := Handler(description, http.NotFoundHandler())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Path] = true
		mu.Unlock()
		pages.ServeHTTP(w, r)
	}))
	defer s.Close()
	cmd := exec.CommandContext(t.Context(), program, "--headless=new", "--no-sandbox",
		"--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--user-data-dir="+t.TempDir(), "--virtual-time-budget=20000", "--enable-logging=stderr",
		"--dump-dom", s.URL+Path)
	var problems strings.Builder
	cmd.Stderr = &problems
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, problems.String())
	}
	for _, want := range []string{
		"Create a charge", "Create a refund", "Retrieve an idempotency key", "Idempotency-Key",
		"/v1/charges/{id}/capture", "tok_visa",
		// how the key is sent, codes, samples
		"PAIDONCE_API_KEY", "charge_already_captured", "openssl rand",
		"<span>" + s.URL + "</span>/v1/charges", // where the page was opened, not where dev listens
	} {
		if !strings.Contains(string(dom), want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	for _, wrong := range []string{"Something went wrong", "Uncaught"} {
		if strings.Contains(string(dom), wrong) || strings.Contains(problems.String(), wrong) {
			t.Errorf("the browser says %q:\n%s", wrong, problems.String())
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 3 {
		t.Errorf("asked for %v", asked)
	}
	for _, line := range strings.Split(problems.String(), "\n") {
		// Redoc's own picture is on another host. The policy keeps the page from asking for it, and
		// the browser says so.
		if strings.Contains(line, "CONSOLE") && !strings.Contains(line, "logo-mini.svg' violates") {
			t.Error(line)
		}
	}
}
