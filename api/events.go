package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"paidonce/outbox"
	"paidonce/problem"
)

// fromEvents returns the answer to an error about an event or an endpoint.
func fromEvents(err error, what string) *problem.Error {
	var p *problem.Error
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, outbox.ErrNoEndpoint):
		return problem.ResourceMissing.Of("webhook_endpoint", "There is no such webhook endpoint.")
	case errors.Is(err, outbox.ErrNotFound):
		return problem.ResourceMissing.Of("id", "There is no such %s.", what)
	}
	return fromDatabase(err)
}

// listEvents shows a page of events, the oldest first unless asked otherwise. The bytes of each are
// those that are delivered.
func (s *Server) listEvents(c echo.Context, r *request) error {
	f, e := eventFilter(r.query)
	if e != nil {
		return e
	}
	ctx, cancel := detached(c)
	defer cancel()
	page, err := s.cfg.Events.List(ctx, r.identity.AccountID, f)
	switch {
	case errors.Is(err, outbox.ErrNotFound):
		cursor := "starting_after"
		if f.EndingBefore != "" {
			cursor = "ending_before"
		}
		return problem.CursorMissing.Of(cursor,
			"%s names no event of yours, or one that is no longer kept.", cursor)
	case err != nil:
		return fromEvents(err, "event")
	}
	body := []byte(`{"object":"list","url":"` + r.op.path + `","has_more":` + strconv.FormatBool(page.HasMore) + `,"data":[`)
	for i := range page.Events {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, page.Events[i].Payload...)
	}
	writeBody(c, http.StatusOK, append(body, "]}\n"...))
	return nil
}

// eventTypesMax is how many types a list may name, as at Stripe.
const eventTypesMax = 20

// eventFilter is what a query selects.
func eventFilter(query *parameters) (f outbox.Filter, e *problem.Error) {
	if e := oneCursor(query); e != nil {
		return f, e
	}
	f = outbox.Filter{
		StartingAfter: query.text("starting_after"), EndingBefore: query.text("ending_before"),
		NewestFirst: query.text("order") == "desc", Limit: int(query.integer("limit")),
		Types: query.texts("types"), TypesParam: "types",
	}
	switch one := query.text("type"); {
	case one != "" && f.Types != nil:
		return f, invalidParameter("types", "Only one of type and types may be given.")
	case one != "":
		f.Types, f.TypesParam = []string{one}, "type"
	case len(f.Types) > eventTypesMax:
		return f, invalidParameter("types", "types may have at most %d entries.", eventTypesMax)
	}
	from, before := query.created()
	f.CreatedFrom, f.CreatedBefore = unixOf(from), unixOf(before)
	return f, nil
}

// unixOf returns a time in Unix seconds, nil for none.
func unixOf(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	s := t.Unix()
	return &s
}

// getEvent shows the stored bytes of an event.
func (s *Server) getEvent(c echo.Context, r *request) error {
	ctx, cancel := detached(c)
	defer cancel()
	event, err := s.cfg.Events.Get(ctx, r.identity.AccountID, r.param)
	if err != nil {
		return fromEvents(err, "event")
	}
	writeBody(c, http.StatusOK, event.Payload)
	return nil
}

// resendEvent has an event delivered again, to all endpoints that want it or to one.
func (s *Server) resendEvent(c echo.Context, r *request) error {
	sent, e := s.readBody(c, r)
	if e != nil {
		return e
	}
	res, err := s.cfg.Events.Resend(context.WithoutCancel(c.Request().Context()),
		keyRequest(c, r, sent), r.param, sent.text("webhook_endpoint"))
	return writeLocal(c, r, res, err, "event")
}
