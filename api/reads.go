package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"paidonce/charges"
	"paidonce/problem"
)

// shown is what reads answer with.
type shown[T any] interface{ WithoutSecrets() T }

// visible returns the objects as the request's API key may see them. A read-only one sees nothing
// with which a payer's payment goes on, or an event is signed.
func visible[T shown[T]](r *request, objects ...T) []T {
	if r.identity.ReadOnly {
		for i, o := range objects {
			objects[i] = o.WithoutSecrets()
		}
	}
	return objects
}

// showOne answers with one of the account's objects as it is now; in full, with what it has of the
// name expanded, if expand[] says so.
func showOne[T shown[T]](
	c echo.Context, r *request, what, expanded string,
	get func(ctx context.Context, accountID, id string, inFull bool) (T, error),
) error {
	ctx, cancel := detached(c)
	defer cancel()
	object, err := get(ctx, r.identity.AccountID, r.param, r.query.expands(expanded))
	switch {
	case errors.Is(err, charges.ErrNotFound):
		return problem.ResourceMissing.Of("id", "There is no such %s.", what)
	case err != nil:
		return fromDatabase(err)
	}
	writeBody(c, http.StatusOK, problem.Render(visible(r, object)[0]))
	return nil
}

// page is a list of openapi.yaml, with its entries as the domain renders them.
type page[T any] struct {
	Object  string `json:"object"`
	URL     string `json:"url"`
	HasMore bool   `json:"has_more"`
	Data    []T    `json:"data"`
}

// list answers with a page of objects. endingBefore is the filter's cursor of that name, and parts
// splits the domain's page.
func list[F, P any, T shown[T]](c echo.Context, r *request, what string, f F, endingBefore string,
	fetch func(ctx context.Context, accountID string, f F) (P, error),
	parts func(P) (entries []T, more bool),
) error {
	ctx, cancel := detached(c)
	defer cancel()
	got, err := fetch(ctx, r.identity.AccountID, f)
	switch {
	case err != nil && !errors.Is(err, charges.ErrNotFound):
		return fromDatabase(err)
	case err != nil && endingBefore != "":
		return problem.CursorMissing.Of("ending_before", "ending_before names no %s of yours.",
			what)
	case err != nil:
		return problem.CursorMissing.Of("starting_after", "starting_after names no %s of yours.",
			what)
	}
	entries, more := parts(got)
	if entries == nil {
		entries = []T{} // null is no list
	}
	writeBody(c, http.StatusOK, problem.Render(page[T]{
		Object: "list", URL: r.op.path, HasMore: more, Data: visible(r, entries...),
	}))
	return nil
}

// oneCursor refuses a query that names both ends of a page.
func oneCursor(query *parameters) *problem.Error {
	if query.text("starting_after") != "" && query.text("ending_before") != "" {
		return invalidParameter("ending_before",
			"Only one of starting_after and ending_before may be given.")
	}
	return nil
}
