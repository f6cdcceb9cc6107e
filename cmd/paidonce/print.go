package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// printList prints a list as a table, or as a JSON array of what toJSON returns for its elements.
func printList[T, J any](
	out io.Writer, asJSON bool, list []T, toJSON func(T) J, columns string, cells func(T) []any,
) error {
	if !asJSON {
		return printTable(out, columns, list, cells)
	}
	rows := make([]J, 0, len(list)) // an empty list is [], not null
	for _, v := range list {
		rows = append(rows, toJSON(v))
	}
	return writeJSON(out, rows)
}

// printTable prints a row for each element of a list. The names of the columns are separated by
// commas.
func printTable[T any](out io.Writer, columns string, list []T, cells func(T) []any) error {
	w := newTable(out)
	fmt.Fprintln(w, strings.ReplaceAll(columns, ",", "\t"))
	for _, v := range list {
		writeRow(w, cells(v)...)
	}
	return w.Flush()
}

// newTable returns a writer that aligns the rows of [writeRow], and prints them when it is flushed.
func newTable(out io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(out, 0, 0, 2, ' ', 0) }

// writeRow writes one row of a table.
func writeRow(w io.Writer, cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = oneLine(fmt.Sprint(c))
	}
	fmt.Fprintln(w, strings.Join(texts, "\t"))
}

// writeJSON prints JSON on one line.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(jsonWriter{w})
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// orDash returns the text for a cell, which is never empty.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return oneLine(s)
}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func rfc3339Ptr(t *time.Time) *string {
	if t == nil {
		return nil
	}
	s := rfc3339(*t)
	return &s
}

// timeOrDash returns the text for a time that may not be set.
func timeOrDash(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return rfc3339(*t)
}
