package idemkeys

import (
	"errors"
	"strings"
)

// KeyMax is the length of the longest key, in characters, which are bytes: keys are ASCII.
const KeyMax = 255

// OvertakenPrefix begins the key of an overtaken operation: its own key came to stand for a later
// operation, in a history that the database has forgotten. The operation's id follows. [ParseKey]
// accepts no such key, so what becomes of the operation is no caller's answer.
const OvertakenPrefix = "\x7f"

// Errors of ParseKey.
var (
	ErrKeyMissing = errors.New("an Idempotency-Key header is required")
	ErrKeyInvalid = errors.New(
		"the Idempotency-Key header must be one line of 1 to 255 printable ASCII characters",
	)
)

// ParseKey reads the values of the Idempotency-Key header lines. The quoted form of a structured
// field, "abc", names the same key as abc. Errors: [ErrKeyMissing] when there is no such line,
// [ErrKeyInvalid] for anything but one well-formed line.
func ParseKey(lines []string) (string, error) {
	if len(lines) == 0 {
		return "", ErrKeyMissing
	}
	if len(lines) > 1 {
		return "", ErrKeyInvalid
	}
	key := strings.Trim(lines[0], " \t")
	if strings.HasPrefix(key, `"`) {
		var ok bool
		if key, ok = unquote(key); !ok {
			return "", ErrKeyInvalid
		}
	}
	if len(key) > KeyMax || strings.Trim(key, " ") == "" {
		return "", ErrKeyInvalid
	}
	for i := range len(key) {
		if key[i] < 0x20 || key[i] > 0x7e {
			return "", ErrKeyInvalid
		}
	}
	return key, nil
}

// unquote reads a string of RFC 8941: backslash escapes only itself and the quote, and nothing
// follows the closing quote.
func unquote(s string) (string, bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), i == len(s)-1
		case '\\':
			if i++; i == len(s) || (s[i] != '"' && s[i] != '\\') {
				return "", false
			}
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return "", false
}
