// Package reference serves the reference page of the API: openapi.yaml, shown by Redoc. All of it is in the binary; the page asks no other
// host for anything.
package reference

import (
	_ "embed" // the page and its program
	"net/http"
	"strings"
)

//go:embed index.html
var page []byte

//go:embed redoc/redoc.standalone.js
var redoc []byte

// Path is where the page has to be: it names its parts relative to that.
const Path = "/docs"

// policy lets the page load nothing but its own parts. Redoc makes its styles while it runs, and searches in a worker that it makes.
const policy = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; worker-src blob:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

type part struct {
	mediaType string
	body      []byte
}

// Handler serves the page at Path, and at paths below it the description (openapi.yaml: YAML or JSON) and the program that shows it.
func Handler(description []byte) http.Handler {
	parts := map[string]part{
		"":              {"text/html; charset=utf-8", page},
		"/openapi.yaml": {"application/yaml", description},
		"/redoc.js":     {"text/javascript; charset=utf-8", redoc},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		below, ok := strings.CutPrefix(r.URL.Path, Path)
		p, known := parts[below]
		if !ok || !known {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", p.mediaType)
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache") // a new version of the server has a new page
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		_, _ = w.Write(p.body) // to HEAD, net/http sends none of it
	})
}
