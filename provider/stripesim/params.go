package stripesim

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// params are a request's parameters by their full names (metadata[order]), sorted. Of a name that
// comes twice, the last one counts, except of names that end in [], which are lists.
type params []pair

func parseParams(form string) (params, *apiError) {
	var out params
	for part := range strings.SplitSeq(form, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		n, err1 := url.QueryUnescape(name)
		v, err2 := url.QueryUnescape(value)
		if err1 != nil || err2 != nil || !utf8.ValidString(n) || !utf8.ValidString(v) {
			return nil, invalid("", "", "Invalid request: the parameters are not valid UTF-8 in form encoding.")
		}
		if strings.HasSuffix(n, "[]") {
			out = append(out, pair{n, v})
			continue
		}
		if i := slices.IndexFunc(out, func(p pair) bool { return p.K == n }); i >= 0 {
			out[i].V = v
			continue
		}
		out = append(out, pair{n, v})
	}
	slices.SortStableFunc(out, func(a, b pair) int { return strings.Compare(a.K, b.K) })
	return out, nil
}

func (p params) lookup(name string) (string, bool) {
	for _, f := range p {
		if f.K == name {
			return f.V, true
		}
	}
	return "", false
}

func (p params) get(name string) string {
	v, _ := p.lookup(name)
	return v
}

// fingerprint stands for path and parameters; the order of parameters doesn't matter to it.
func (p params) fingerprint(path string) string {
	b := make([]byte, 0, 512)
	b = strconv.AppendQuote(b, path)
	for _, f := range p {
		b = strconv.AppendQuote(b, f.K)
		b = strconv.AppendQuote(b, f.V)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// allow refuses names that an endpoint doesn't have. nested are names that take brackets.
func (p params) allow(plain, nested string) *apiError {
	for _, f := range p {
		base, _, bracket := strings.Cut(f.K, "[")
		if bracket && has(nested, base) || !bracket && (has(plain, base) || has(nested, base)) {
			continue
		}
		return invalid("parameter_unknown", f.K, "Received unknown parameter: %s", base)
	}
	return nil
}

func has(words, word string) bool { return word != "" && strings.Contains(" "+words+" ", " "+word+" ") }

// integer reads a whole number; ok reports whether there was one.
func (p params) integer(name string) (n int64, ok bool, bad *apiError) {
	v, there := p.lookup(name)
	if !there || v == "" {
		return 0, false, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return 0, false, invalid("parameter_invalid_integer", name, "Invalid integer: %s", v)
	}
	return n, true, nil
}

// positive is integer for amounts: at least 1, at most eight digits.
func (p params) positive(name string) (n int64, ok bool, bad *apiError) {
	n, ok, bad = p.integer(name)
	switch {
	case bad != nil || !ok:
		return 0, false, bad
	case n < 1:
		return 0, false, invalid("parameter_invalid_integer", name, "This value must be greater than or equal to 1.")
	case n > 999_999_999_999:
		return 0, false, tooLarge(name, 999_999_999_999)
	}
	return n, true, nil
}

func (p params) boolean(name string, absent bool) (bool, *apiError) {
	switch v, ok := p.lookup(name); {
	case !ok || v == "":
		return absent, nil
	case v == "true":
		return true, nil
	case v == "false":
		return false, nil
	default:
		return false, invalid("", name, "Invalid boolean: %s", v)
	}
}

// expands reports whether an object is asked for in full: expand[]=name or expand[0]=name.
func (p params) expands(name string) bool {
	return slices.ContainsFunc(p, func(f pair) bool { return strings.HasPrefix(f.K, "expand[") && f.V == name })
}

// price reads amount and currency of what is to be paid.
func (p params) price() (amount int64, currency string, bad *apiError) {
	amount, given, bad := p.positive("amount")
	if bad != nil {
		return 0, "", bad
	}
	if !given {
		return 0, "", missing("amount")
	}
	currency = strings.ToLower(p.get("currency"))
	return amount, currency, checkPrice(amount, currency)
}

func checkPrice(amount int64, currency string) *apiError {
	switch {
	case currency == "":
		return missing("currency")
	case !currencies[currency]:
		return invalid("", "currency", "Invalid currency: %s. The simulator knows the currencies that Stripe charges in.", currency)
	case amount > maximum(currency):
		return tooLarge("amount", maximum(currency))
	case amount < minimum(currency):
		return invalid("amount_too_small", "amount", "Amount must be at least %s", leastAmount(currency))
	}
	return nil
}

func tooLarge(name string, most int64) *apiError {
	return invalid("amount_too_large", name, "Amount must be no more than %d in the currency's smallest unit", most)
}

// metadata collects metadata[…]. An empty value means "not set", as with Stripe.
func (p params) metadata() ([]pair, *apiError) {
	var out []pair
	for _, f := range p {
		rest, ok := strings.CutPrefix(f.K, "metadata")
		if !ok {
			continue
		}
		if rest == "" {
			if f.V != "" {
				return nil, invalid("", "metadata", "Invalid object")
			}
			continue
		}
		name, closed := strings.CutSuffix(strings.TrimPrefix(rest, "["), "]")
		switch {
		case !strings.HasPrefix(rest, "[") || !closed || name == "" || strings.ContainsAny(name, "[]"):
			return nil, invalid("", "metadata", "Metadata keys can't be empty or contain square brackets.")
		case utf8.RuneCountInString(name) > 40:
			return nil, invalid("", "metadata", "Metadata keys can have at most 40 characters: %s", name)
		case utf8.RuneCountInString(f.V) > 500:
			return nil, invalid("", "metadata["+name+"]", "Metadata values can have at most 500 characters, but %s has more.", name)
		case f.V == "":
			continue
		}
		out = append(out, pair{name, f.V})
	}
	if len(out) > maxPairs {
		return nil, tooManyPairs()
	}
	return out, nil
}

const maxPairs = 50 // of metadata

func tooManyPairs() *apiError {
	return invalid("", "metadata", "Metadata can have at most %d keys.", maxPairs)
}
