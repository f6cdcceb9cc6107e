package e2e

import (
	"testing"

	"github.com/stripe/stripe-go/v76"
)

// compat: expand of refunds and charge, of one object and in lists.
func TestStripeGoExpand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sc, _ := w.stripeGo(w.serve(), 2)
	p := chargeOf("expand", 2000, "tok_visa")
	p.AddExpand("refunds")
	p.AddExpand("customer")
	charge, err := sc.Charges.New(p)
	if err != nil || charge.Refunds == nil || len(charge.Refunds.Data) != 0 {
		t.Fatalf("created %+v %v", charge, err)
	}
	r := &stripe.RefundParams{Charge: &charge.ID, Amount: stripe.Int64(400)}
	r.AddExpand("charge")
	refund, err := sc.Refunds.New(r)
	if err != nil || refund.Charge.ID != charge.ID || refund.Charge.AmountRefunded != 400 {
		t.Fatalf("refunded %+v %v", refund, err)
	}
	read := &stripe.ChargeParams{}
	read.AddExpand("refunds")
	got, err := sc.Charges.Get(charge.ID, read)
	if err != nil || len(got.Refunds.Data) != 1 || got.Refunds.Data[0].ID != refund.ID {
		t.Errorf("retrieved %+v %v", got, err)
	}
	list := &stripe.ChargeListParams{}
	list.AddExpand("data.refunds")
	charges := sc.Charges.List(list)
	if !charges.Next() || len(charges.Charge().Refunds.Data) != 1 {
		t.Errorf("listed %+v %v", charges.ChargeList(), charges.Err())
	}
	of := &stripe.RefundListParams{Charge: &charge.ID}
	of.AddExpand("data.charge")
	refunds := sc.Refunds.List(of)
	if !refunds.Next() || refunds.Refund().Charge.Amount != 2000 {
		t.Errorf("listed %+v %v", refunds.RefundList(), refunds.Err())
	}
}
