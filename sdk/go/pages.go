package paidonce

import (
	"context"
	"iter"
	"net/http"
	"slices"

	"paidonce/sdk/go/rest"
)

// The largest page of a list.
const fullPage = 100

// Charges returns all charges that the query selects, newest first, page by page. An error ends the
// sequence.
func (c *Client) Charges(ctx context.Context, q ChargeQuery) iter.Seq2[Charge, error] {
	return pages(q.Limit, q.StartingAfter, func(limit int, from *string) ([]Charge, bool, error) {
		q.Limit, q.StartingAfter = &limit, from
		page, err := list[rest.ChargeList](ctx, c, func(server string) (*http.Request, error) {
			return rest.NewListChargesRequest(server, &q)
		})
		if err != nil {
			return nil, false, err
		}
		return page.Data.Data, page.Data.HasMore, nil
	}, func(ch Charge) string { return ch.ID })
}

// intentPage is a [rest.PaymentIntentList] that was asked for without the whole charges.
type intentPage struct {
	Data    []PaymentIntent `json:"data"`
	HasMore bool            `json:"has_more"`
}

// PaymentIntents returns all payment intents that the query selects, newest first, page by page. An
// error ends the sequence.
func (c *Client) PaymentIntents(
	ctx context.Context, q PaymentIntentQuery,
) iter.Seq2[PaymentIntent, error] {
	return pages(q.Limit, q.StartingAfter, func(
		limit int, from *string,
	) ([]PaymentIntent, bool, error) {
		if slices.Contains(q.Expand, rest.PaymentIntentListExpandDataLatestCharge) {
			return nil, false, errWholeCharge
		}
		q.Limit, q.StartingAfter = &limit, from
		page, err := list[intentPage](ctx, c,
			func(server string) (*http.Request, error) {
				return rest.NewListPaymentIntentsRequest(server, &q)
			})
		if err != nil {
			return nil, false, err
		}
		return page.Data.Data, page.Data.HasMore, nil
	}, func(i PaymentIntent) string { return i.ID })
}

// Refunds returns all refunds that the query selects, newest first, page by page. An error ends the
// sequence.
func (c *Client) Refunds(ctx context.Context, q RefundQuery) iter.Seq2[Refund, error] {
	return pages(q.Limit, q.StartingAfter, func(limit int, from *string) ([]Refund, bool, error) {
		if slices.Contains(q.Expand, rest.RefundListExpandDataCharge) {
			return nil, false, errWholeCharge
		}
		q.Limit, q.StartingAfter = &limit, from
		page, err := list[rest.RefundList](ctx, c, func(server string) (*http.Request, error) {
			return rest.NewListRefundsRequest(server, &q)
		})
		if err != nil {
			return nil, false, err
		}
		return page.Data.Data, page.Data.HasMore, nil
	}, func(r Refund) string { return r.ID })
}

// Disputes returns all disputes that the query selects, newest first, page by page. An error ends
// the sequence.
func (c *Client) Disputes(ctx context.Context, q DisputeQuery) iter.Seq2[Dispute, error] {
	return pages(q.Limit, q.StartingAfter, func(limit int, from *string) ([]Dispute, bool, error) {
		if slices.Contains(q.Expand, rest.DisputeListExpandDataCharge) {
			return nil, false, errWholeCharge
		}
		q.Limit, q.StartingAfter = &limit, from
		page, err := list[rest.DisputeList](ctx, c, func(server string) (*http.Request, error) {
			return rest.NewListDisputesRequest(server, &q)
		})
		if err != nil {
			return nil, false, err
		}
		return page.Data.Data, page.Data.HasMore, nil
	}, func(d Dispute) string { return d.ID })
}

func pages[T any](
	size *int, from *string, page func(limit int, from *string) ([]T, bool, error),
	id func(T) string,
) iter.Seq2[T, error] {
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
