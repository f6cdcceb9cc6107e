package db

import "strings"

// Clean makes text from outside fit for a text column and a log line: valid UTF-8, without NUL, and
// of at most that many bytes.
func Clean(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// OrNil is NULL for an empty text, as nullable columns have it.
func OrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// OrEmpty is OrNil's inverse.
func OrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
