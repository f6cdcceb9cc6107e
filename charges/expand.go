package charges

import (
	"context"
	"encoding/json"

	"paidonce/db"
	"paidonce/problem"
)

// What is shown in full because a request asks for it, as with Stripe's expand[]: the refunds of a
// charge, and the charge of a refund.

// refundsShown is how many refunds of a charge are shown with it, as at Stripe: nearly all charges
// have fewer, and a page of charges stays small enough to be read at once.
const refundsShown = 10

// RefundsOf are the newest refunds of a charge, as a list within it.
type RefundsOf struct {
	Object  string   `json:"object"`
	Data    []Refund `json:"data"`
	HasMore bool     `json:"has_more"`
	URL     string   `json:"url"`
}

// refundsOf is the list of a charge's refunds. rows are the newest, one more than are shown if
// there are so many.
func refundsOf(charge string, rows []db.Refund) (*RefundsOf, error) {
	list := noRefunds(charge)
	list.HasMore = len(rows) > refundsShown
	for _, row := range rows[:min(len(rows), refundsShown)] {
		refund, err := refundFromRow(row)
		if err != nil {
			return nil, err
		}
		list.Data = append(list.Data, refund)
	}
	return list, nil
}

// noRefunds is the list of a charge that has no refunds, such as one that was just made.
func noRefunds(charge string) *RefundsOf {
	return &RefundsOf{Object: "list", Data: []Refund{}, URL: "/v1/refunds?charge=" + charge}
}

// showRefunds puts their refunds into charges of an account, with one statement for all.
func (s *Store) showRefunds(
	ctx context.Context, conn db.DBTX, accountID string, charges []Charge,
) error {
	p := db.RefundsOfChargesParams{AccountID: accountID, MaxRows: refundsShown + 1}
	for _, c := range charges {
		p.ChargeIds = append(p.ChargeIds, c.ID)
	}
	if len(charges) == 0 {
		return nil
	}
	rows, err := s.queries.RefundsOfCharges(ctx, conn, p)
	if err != nil {
		return err
	}
	of := make(map[string][]db.Refund, len(charges))
	for _, row := range rows {
		of[row.ChargeID] = append(of[row.ChargeID], row)
	}
	for i, c := range charges {
		if charges[i].Refunds, err = refundsOf(c.ID, of[c.ID]); err != nil {
			return db.Final(err)
		}
	}
	return nil
}

// readRefunds is showRefunds in a statement of its own.
func (s *Store) readRefunds(ctx context.Context, accountID string, charges []Charge) error {
	_, err := db.Read0(db.OnlyReads(ctx), s.pool, func(
		ctx context.Context, conn db.DBTX,
	) (struct{}, error) {
		return struct{}{}, s.showRefunds(ctx, conn, accountID, charges)
	})
	return err
}

// ChargeRef is a charge within another object: its id, or the whole charge if a request asks for
// it.
type ChargeRef struct {
	ID    string
	whole *Charge
}

// MarshalJSON shows the id, or the whole charge.
func (r ChargeRef) MarshalJSON() ([]byte, error) {
	if r.whole != nil {
		return problem.Render(r.whole), nil
	}
	return problem.Render(r.ID), nil
}

// withoutSecrets is the reference with the whole charge, if there is one, without its secrets.
func (r ChargeRef) withoutSecrets() ChargeRef {
	if r.whole != nil {
		whole := r.whole.WithoutSecrets()
		r.whole = &whole
	}
	return r
}

// WithoutSecrets is a refund whose charge is without secrets.
func (r Refund) WithoutSecrets() Refund {
	r.Charge = r.Charge.withoutSecrets()
	return r
}

// WithoutSecrets is a dispute whose charge is without secrets.
func (d Dispute) WithoutSecrets() Dispute {
	d.Charge = d.Charge.withoutSecrets()
	return d
}

// UnmarshalJSON reads the id.
func (r *ChargeRef) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &r.ID) }

// readCharges puts the whole charges into what refers to them, of an account, with one statement
// for all.
func (s *Store) readCharges(ctx context.Context, accountID string, refs ...*ChargeRef) error {
	p := db.ChargesOfIDsParams{AccountID: accountID}
	for _, r := range refs {
		p.Ids = append(p.Ids, r.ID)
	}
	if len(refs) == 0 {
		return nil
	}
	rows, err := db.Read(db.OnlyReads(ctx), s.pool, s.queries.ChargesOfIDs, p)
	if err != nil {
		return err
	}
	of := make(map[string]*Charge, len(rows))
	for _, row := range rows {
		c, err := fromRow(row)
		if err != nil {
			return err
		}
		of[c.ID] = &c
	}
	for _, r := range refs {
		r.whole = of[r.ID]
	}
	return nil
}

// readChargesOf is readCharges for a page of objects; ref is nil for one that has no charge.
func readChargesOf[T any](
	ctx context.Context, s *Store, accountID string, page []T, ref func(*T) *ChargeRef,
) error {
	refs := make([]*ChargeRef, 0, len(page))
	for i := range page {
		if r := ref(&page[i]); r != nil {
			refs = append(refs, r)
		}
	}
	return s.readCharges(ctx, accountID, refs...)
}
