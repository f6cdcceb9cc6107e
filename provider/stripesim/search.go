package stripesim

import (
	"strconv"
	"strings"
)

// term is one comparison of a search query: field:'value', or its negation.
type term struct {
	field, key, value string // key is the name inside metadata['…']
	not               bool
}

// parseQuery reads the part of Stripe's search language that compares for equality, joined by AND.
func parseQuery(q string) ([]term, *apiError) {
	if strings.TrimSpace(q) == "" {
		return nil, missing("query")
	}
	var terms []term
	for rest := strings.TrimSpace(q); ; {
		t, tail, good := parseTerm(rest)
		if !good {
			return nil, invalid("", "query", "We were unable to parse your search query: %s", q)
		}
		terms = append(terms, t)
		if tail = strings.TrimSpace(tail); tail == "" {
			return terms, nil
		}
		var and bool
		if rest, and = strings.CutPrefix(tail, "AND "); !and {
			return nil, invalid("", "query", "We were unable to parse your search query: %s", q)
		}
		rest = strings.TrimSpace(rest)
	}
}

func parseTerm(s string) (t term, rest string, good bool) {
	s, t.not = strings.CutPrefix(s, "-")
	i := strings.IndexAny(s, "[:")
	if i <= 0 {
		return t, "", false
	}
	t.field, s = s[:i], s[i:]
	if s[0] == '[' {
		if t.key, s, good = quoted(s[1:]); !good || t.field != "metadata" {
			return t, "", false
		}
		if s, good = strings.CutPrefix(s, "]"); !good {
			return t, "", false
		}
	}
	if s, good = strings.CutPrefix(s, ":"); !good {
		return t, "", false
	}
	if s == "" || (s[0] != '\'' && s[0] != '"') { // numbers need no quotes
		end := strings.IndexByte(s+" ", ' ')
		t.value = s[:end]
		return t, s[end:], end > 0
	}
	t.value, rest, good = quoted(s)
	return t, rest, good
}

// quoted reads '…' or "…", in which a backslash takes the next character as it is.
func quoted(s string) (value, rest string, good bool) {
	if s == "" || (s[0] != '\'' && s[0] != '"') {
		return "", "", false
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case s[i] == s[0]:
			return b.String(), s[i+1:], true
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}

func matchesAll(terms []term, c *charge) bool {
	for _, t := range terms {
		if t.matches(c) == t.not {
			return false
		}
	}
	return true
}

func (t term) matches(c *charge) bool {
	switch t.field {
	case "metadata":
		for _, p := range c.Metadata {
			if p.K == t.key {
				return p.V == t.value
			}
		}
		return false
	case "amount":
		return strconv.FormatInt(c.Amount, 10) == t.value
	case "currency":
		return c.Currency == strings.ToLower(t.value)
	case "customer":
		return c.Customer == t.value
	case "status":
		return c.Status == t.value
	}
	return false
}
