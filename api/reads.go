package api

import (
	"context"
	"errors"
	"net/http"

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
		return faultUnavailable.because(err)
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

func writePage[T any](c echo.Context, url string, entries []T, more bool) {
	if entries == nil {
		entries = []T{} // null is no list
	}
	writeBody(c, http.StatusOK, idemkeys.Render(page[T]{Object: "list", URL: url, HasMore: more, Data: entries}))
}

// fromList is the answer to what the domain says instead of a page.
func fromList(err error, what, endingBefore string) *apiError {
	if !errors.Is(err, charges.ErrNotFound) {
		return faultUnavailable.because(err)
	}
	cursor := "starting_after"
	if endingBefore != "" {
		cursor = "ending_before"
	}
	return faultCursorMissing.of(cursor, "%s names no %s of yours.", cursor, what)
}

const (
	limitDefault = 10  // Stripe's
	limitMax     = 100 // Stripe's; also what keeps a page within some 100 kB
	queryTextMax = 255 // bytes; no id is longer
)

// queryText is a text of a query, and where it goes.
type queryText struct {
	name string
	from *string
	to   *string
}

// pageBounds reads what all lists have: how many, from where on, and of whom.
func pageBounds(limit *int, after, before, of queryText) (int, *apiError) {
	n := limitDefault
	if limit != nil {
		if n = *limit; n < 1 || n > limitMax {
			return n, faultParameterInteger.of("limit", "limit must be between 1 and %d.", limitMax)
		}
	}
	for _, t := range [...]queryText{after, before, of} {
		if t.from == nil {
			continue
		}
		if *t.to = *t.from; len(*t.to) > queryTextMax {
			return n, invalidParameter(t.name, "%s may have at most %d characters.", t.name, queryTextMax)
		}
	}
	if *after.to != "" && *before.to != "" {
		return n, invalidParameter("ending_before", "Only one of starting_after and ending_before may be given.")
	}
	return n, nil
}
