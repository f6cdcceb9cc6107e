package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text of clients, of the provider and of receivers comes to operators' terminals, and a terminal does what it reads: it clears
// itself, changes its title, or shows words in another order. So it reads nothing but what it is to show. All that commands write
// goes through a [shownWriter]; tables and lists also keep each text to its place, with [oneLine]; what is JSON keeps its
// meaning, with [shownJSON].

// acts reports whether a terminal acts on a character rather than shows it, or shows others differently for it: controls, of
// which ESC begins a sequence and U+009B is one byte of such in other encodings, marks of direction, invisible characters.
func acts(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// oneLine keeps text of others from making lines, columns or terminal sequences of its own.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if acts(r) {
			return ' '
		}
		return r
	}, text)
}

// writeRow writes cells as a row of a tabwriter.
func writeRow(w io.Writer, cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = oneLine(fmt.Sprint(c))
	}
	fmt.Fprintln(w, strings.Join(texts, "\t"))
}

// shownWriter hands on what may be shown, with spaces for what may not; lines and tabs stay.
type shownWriter struct{ to io.Writer }

func (s shownWriter) Write(p []byte) (int, error) {
	if _, err := s.to.Write(bytes.Map(func(r rune) rune {
		if acts(r) && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}, p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// shownJSON writes what may not be shown as JSON's escapes, so that whoever reads it has the very text. Outside of its strings
// JSON has no such character but spaces and ends of lines, which stay.
func shownJSON(text []byte) []byte {
	acting := func(r rune) bool { return acts(r) && r >= utf8.RuneSelf || r == 0x7f }
	if bytes.IndexFunc(text, acting) < 0 {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case !acting(r):
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

// jsonWriter is for whole texts of JSON at a time, such as lines of a log.
type jsonWriter struct{ to io.Writer }

func (j jsonWriter) Write(p []byte) (int, error) {
	if _, err := j.to.Write(shownJSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
