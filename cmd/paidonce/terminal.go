package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Operators' terminals show text of clients, of the provider and of receivers, and a terminal obeys
// control characters: it clears itself, changes its title, or shows words in another order. So all
// output of commands goes through a [plainWriter], which removes these. Tables and lists also keep
// each text on its line and in its column, with [oneLine]. JSON keeps its meaning, with
// [plainJSON].

// isControl reports whether a terminal obeys a character rather than shows it, or shows others
// differently because of it: control characters (ESC begins a sequence, and in other encodings
// U+009B does), direction marks, invisible characters.
func isControl(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// oneLine replaces control characters by spaces, so that foreign text makes no lines, columns or
// terminal sequences.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return ' '
		}
		return r
	}, text)
}

// plainWriter writes spaces for control characters, except for line ends and tabs.
type plainWriter struct{ to io.Writer }

func (s plainWriter) Write(p []byte) (int, error) {
	if _, err := s.to.Write(bytes.Map(func(r rune) rune {
		if isControl(r) && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}, p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// plainJSON writes control characters as JSON's escapes, so that readers of the JSON get the very
// text. Outside of its strings, JSON has no control characters but white space, which stays.
func plainJSON(text []byte) []byte {
	escaped := func(r rune) bool { return isControl(r) && r >= utf8.RuneSelf || r == 0x7f }
	if bytes.IndexFunc(text, escaped) < 0 {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case !escaped(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// jsonWriter is for writes of whole JSON texts, such as the lines of a log.
type jsonWriter struct{ to io.Writer }

func (j jsonWriter) Write(p []byte) (int, error) {
	if _, err := j.to.Write(plainJSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
