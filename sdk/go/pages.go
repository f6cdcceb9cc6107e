package paidonce

import (
	"context"
	"iter"
	"net/http"

	"paidonce/sdk/go/rest"
)

// The most that a list returns at once.
const fullPage = 100

// Charges are all charges that the query asks for, newest first, page after page. An error ends them.
func (c *Client) Charges(ctx context.Context, q ChargeQuery) iter.Seq2[Charge, error] {
	return pages(q.Limit, q.StartingAfter, func(limit int, from *string) ([]Charge, bool, error) {
		q.Limit, q.StartingAfter = &limit, from
		page, err := list[rest.ChargeList](ctx, c, func(server string) (*http.Request, error) { return rest.NewListChargesRequest(server, &q) })
		if err != nil {
			return nil, false, err
		}
		return page.Data.Data, page.Data.HasMore, nil
	}, func(ch Charge) string { return ch.ID })
}

// Refunds are all refunds that the query asks for, newest first, page after page. An error ends them.
func (c *Client) Refunds(ctx context.Context, q RefundQuery) iter.Seq2[Refund, error] {
	return pages(q.Limit, q.StartingAfter, func(limit int, from *string) ([]Refund, bool, error) {
		q.Limit, q.StartingAfter = &limit, from
		page, err := list[rest.RefundList](ctx, c, func(server string) (*http.Request, error) { return rest.NewListRefundsRequest(server, &q) })
		if err != nil {
			return nil, false, err
		}
		return page.Data.Data, page.Data.HasMore, nil
	}, func(r Refund) string { return r.ID })
}

func pages[T any](size *int, from *string, page func(limit int, from *string) ([]T, bool, error), id func(T) string) iter.Seq2[T, error] {
	limit := fullPage
	if size != nil {
		limit = *size
	}
	return func(yield func(T, error) bool) {
		for at := from; ; {
			data, more, err := page(limit, at)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, v := range data {
				if !yield(v, nil) {
					return
				}
			}
			if !more || len(data) == 0 {
				return
			}
			last := id(data[len(data)-1])
			at = &last
		}
	}
}
