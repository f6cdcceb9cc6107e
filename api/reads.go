package api

import (
	"context"
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"paidonce/charges"
	"paidonce/idemkeys"
)

// show answers with one of the account's things as it is now.
func show[T any](c echo.Context, id, what string, get func(ctx context.Context, accountID, id string) (T, error)) error {
	ctx, cancel := detached(c)
	defer cancel()
	thing, err := get(ctx, exchangeOf(c).identity.AccountID, id)
	switch {
	case errors.Is(err, charges.ErrNotFound):
		return faultResourceMissing.of("id", "There is no such %s.", what)
	case err != nil:
		return fromDatabase(err)
	}
	writeBody(c, http.StatusOK, idemkeys.Render(thing))
	return nil
}

// page is a list of openapi.yaml, with its entries as the domain renders them.
type page[T any] struct {
	Object  string `json:"object"`
	URL     string `json:"url"`
	HasMore bool   `json:"has_more"`
	Data    []T    `json:"data"`
}

// list answers with the page of a filter whose cursor may be endingBefore. parts takes the domain's page apart.
func list[F, P, T any](c echo.Context, what, url string, f F, endingBefore string,
	ask func(ctx context.Context, accountID string, f F) (P, error), parts func(P) (entries []T, more bool),
) error {
	ctx, cancel := detached(c)
	defer cancel()
	got, err := ask(ctx, exchangeOf(c).identity.AccountID, f)
	switch {
	case err != nil && !errors.Is(err, charges.ErrNotFound):
		return fromDatabase(err)
	case err != nil && endingBefore != "":
		return faultCursorMissing.of("ending_before", "ending_before names no %s of yours.", what)
	case err != nil:
		return faultCursorMissing.of("starting_after", "starting_after names no %s of yours.", what)
	}
	entries, more := parts(got)
	if entries == nil {
		entries = []T{} // null is no list
	}
	writeBody(c, http.StatusOK, idemkeys.Render(page[T]{Object: "list", URL: url, HasMore: more, Data: entries}))
	return nil
}

const (
	limitDefault = 10  // Stripe's
	limitMax     = 100 // Stripe's; also what keeps a page within some 100 kB
	queryTextMax = 255 // characters; no id is longer
)

// overlong reports whether a text is longer than openapi.yaml allows where something is named or looked for.
func overlong(s string) bool { return utf8.RuneCountInString(s) > queryTextMax }

// queryText is a text of a query, and where it goes.
type queryText struct {
	name string
	from *string
	to   *string
}

// pageBounds reads what lists have that can be read in both directions: how many, from where on, and of whom.
func pageBounds(limit *int, after, before, of queryText) (int, *apiError) {
	n, e := pageLimit(limit, after, before, of)
	if e == nil && *after.to != "" && *before.to != "" {
		e = invalidParameter("ending_before", "Only one of starting_after and ending_before may be given.")
	}
	return n, e
}

// pageLimit reads how many a list is asked for, and texts of its query.
func pageLimit(limit *int, texts ...queryText) (int, *apiError) {
	n := limitDefault
	if limit != nil {
		if n = *limit; n < 1 || n > limitMax {
			return n, faultParameterInteger.of("limit", "limit must be between 1 and %d.", limitMax)
		}
	}
	for _, t := range texts {
		if t.from == nil {
			continue
		}
		if *t.to = *t.from; overlong(*t.to) {
			return n, invalidParameter(t.name, "%s may have at most %d characters.", t.name, queryTextMax)
		}
	}
	return n, nil
}
