// Package reference serves the reference page of the API: openapi.yaml, shown by Redoc. Everything
// is in the binary; the page loads nothing from other hosts.
package reference

import (
	_ "embed" // the page and its program
	"net/http"
)

//go:embed index.html
var page []byte

//go:embed redoc/redoc.standalone.js
var redoc []byte

// Path is where the page has to be served: it names its parts relative to it.
const Path = "/docs"

// policy lets the page load only its own parts. Redoc generates its styles while it runs, and
// searches in a worker that it creates.
const policy = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; " +
	"connect-src 'self'; worker-src blob:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

type part struct {
	mediaType string
	body      []byte
}

// Handler serves the page at Path and, below it, the program that shows it and the description: the
// text of openapi.yaml, which is at /openapi.yaml, too. It leaves all other requests to rest, whose
// errors are the API's.
func Handler(description []byte, rest http.Handler) http.Handler {
	yaml := part{"application/yaml", description}
	parts := map[string]part{
		Path:                   {"text/html; charset=utf-8", page},
		Path + "/redoc.js":     {"text/javascript; charset=utf-8", redoc},
		Path + "/openapi.yaml": yaml,
		"/openapi.yaml":        yaml,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		if reads && r.URL.Path == Path+"/" { // where the page would not find its parts
			http.Redirect(w, r, Path, http.StatusPermanentRedirect)
			return
		}
		p, known := parts[r.URL.Path]
		if !known || !reads {
			rest.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", p.mediaType)
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache") // a new version of the server has a new page
		_, _ = w.Write(p.body)             // to HEAD, net/http sends none of it
	})
}
