package api

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"paidonce/problem"
)

// whole fails when accepted parameters contain what the database cannot keep, or when their
// canonical form is not a fixed point.
func whole(t *testing.T, p *parameters) string {
	t.Helper()
	for i := range p.values {
		v := p.values[i]
		texts := []string{v.text}
		for _, m := range v.members {
			texts = append(texts, m.name, m.text)
		}
		for _, s := range texts {
			if !utf8.ValidString(s) || strings.Contains(s, "\x00") {
				t.Fatalf("accepted %q", s)
			}
		}
	}
	canonical := string(p.canonical())
	again, e := decodeJSON([]byte(canonical), p.shape)
	if e != nil {
		t.Fatalf("the canonical form %s is refused: %v", canonical, e)
	}
	if got := string(again.canonical()); got != canonical {
		t.Fatalf("the canonical form %s becomes %s", canonical, got)
	}
	return canonical
}

// asForm writes parameters the other way.
func (p *parameters) asForm() string {
	var list []string
	p.eachPair(func(name, val string) {
		list = append(list, url.QueryEscape(name)+"="+url.QueryEscape(val))
	})
	return strings.Join(list, "&")
}

func (p *parameters) eachPair(add func(name, val string)) {
	for i, f := range p.shape {
		v := p.values[i]
		switch {
		case !p.given[i]:
		case f.kind == pairs && len(v.members) == 0:
			add(f.name, "")
		case f.kind == pairs:
			for _, m := range v.members {
				add(memberName(f.name, m.name), m.text)
			}
		case f.kind == record && !slices.Contains(v.record.given, true):
			// {} cannot be written otherwise, and says no more
			add(v.record.shape[slices.IndexFunc(v.record.shape, func(f field) bool {
				return f.unset
			})].name, "")
		case f.kind == record:
			v.record.eachPair(add)
		case f.kind == text:
			add(f.name, v.text)
		default:
			add(f.name, string(v.appendCanonical(nil)))
		}
	}
}

func FuzzDecodeJSON(f *testing.F) {
	for _, s := range documents {
		f.Add([]byte(s.body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, e := chargeJSON(string(body))
		if e != nil {
			if e.Code.Status() != 400 {
				t.Fatalf("refused with %v", e)
			}
			return
		}
		canonical := whole(t, p)
		q, e := chargeForm(p.asForm())
		if e != nil {
			t.Fatalf("%s is refused as the form %s: %v", canonical, p.asForm(), e)
		}
		if got := whole(t, q); got != canonical {
			t.Fatalf("%s becomes %s as a form", canonical, got)
		}
	})
}

func FuzzDecodeForm(f *testing.F) {
	for _, s := range []string{
		"", "amount=2000&currency=usd&source=tok_visa&metadata[order]=6735", "metadata=", "metadata%5Ba%5D=%C3%A9+x", "amount=-0", "a=1;b=2",
		"metadata[a][b]=x", "description=%ff", "description=%00", "%zz", "&", "=", "capture=true&capture=false", "metadata[]=1", "expand[0]=x",
		"shipping[name]=a&shipping[address][city]=b", "shipping[address]=", "shipping=", "shipping[address][town]=x", "shipping[name]=a&shipping[name]=b",
	} {
		f.Add(s)
	}
	var shapes []shape
	for _, op := range (*Server)(nil).operations() {
		shapes = append(shapes, op.query, op.body)
	}
	shapes = slices.DeleteFunc(shapes, func(s shape) bool { return len(s) == 0 })
	f.Fuzz(func(t *testing.T, body string) {
		for _, s := range shapes {
			p, e := decodeForm(body, s, problem.BodyMalformed)
			if e != nil {
				if e.Code.Status() != 400 {
					t.Fatalf("refused with %v", e)
				}
				continue
			}
			if p.shape[0].name == "amount" { // bounds cannot be written as JSON
				whole(t, p)
			}
		}
	})
}
