package stripe

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxText = 500 // bytes

// clean makes a text of Stripe's fit for logs and for the database: valid UTF-8 without control
// characters, bounded, and without anything that looks like a key. Stripe's 401 quotes most of the
// key that it was sent.
func (p *Provider) clean(s string) string {
	if plain(s) {
		return s
	}
	s = strings.ReplaceAll(s, p.key, "[key]")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	s = redact(s)
	if len(s) > maxText {
		cut := maxText
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	return s
}

// plain reports whether nothing has to be done, which is so for nearly every text.
func plain(s string) bool {
	if len(s) > maxText {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '_' && i > 0 && s[i-1] == 'k' || c == '_' && i > 0 && s[i-1] == 'c' {
			return false
		}
	}
	return true
}

var keyPrefixes = []string{"sk_", "rk_", "pk_", "whsec_"}

// redact replaces what follows a key's prefix, masked or not.
func redact(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		prefix := ""
		if i == 0 || !keyByte(s[i-1]) {
			for _, p := range keyPrefixes {
				if strings.HasPrefix(s[i:], p) {
					prefix = p
				}
			}
		}
		if prefix == "" {
			b.WriteByte(s[i])
			i++
			continue
		}
		b.WriteString(prefix + "…")
		for i += len(prefix); i < len(s) && keyByte(s[i]); i++ {
		}
	}
	return b.String()
}

func keyByte(c byte) bool {
	return c == '_' || c == '*' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
