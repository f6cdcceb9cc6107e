package stripesim

import (
	"net/http"
	"strings"
)

func (s *Server) createCustomer(c *call) (work, *apiError) {
	p := c.params
	if bad := p.allow("description email name phone source", "address expand metadata shipping"); bad != nil {
		return nil, bad
	}
	metadata, bad := p.metadata()
	if bad != nil {
		return nil, bad
	}
	source := p.get("source")
	cust := &customer{
		Live: c.live, Email: p.get("email"), Name: p.get("name"), Phone: p.get("phone"), Description: p.get("description"),
		Source: source, Metadata: metadata,
	}
	return func(*state) (*record, *apiError) {
		if source != "" {
			card, known := testCards[source]
			if !known {
				return nil, noSuchParam("token", source, "source")
			}
			if card.badAttach {
				d := declines[card.decline]
				return nil, &apiError{
					Status: http.StatusPaymentRequired, Type: typeCard, Code: d.code, DeclineCode: card.decline, Message: d.message, Param: d.param,
				}
			}
		}
		cust.ID, cust.Created = newID("cus_"), s.now().Unix()
		rec := &record{Op: opCustomer, Customer: cust}
		rec.event("customer.created")
		return rec, nil
	}, nil
}

// defaultSource is the id of the card that the customer's token became.
func (c *customer) defaultSource() string { return "card_" + c.ID[len("cus_"):] }

// card gives the token behind one of the customer's cards. Beside the default, each has a card for
// every test token, so that examples need no preparation: card_mastercard, src_mastercard and
// pm_mastercard are tok_mastercard's.
func (c *customer) card(id string) (token string, has bool) {
	if c.Source != "" && id == c.defaultSource() {
		return c.Source, true
	}
	prefix, name, _ := strings.Cut(id, "_")
	if prefix != "card" && prefix != "src" && prefix != "pm" {
		return "", false
	}
	_, has = testCards["tok_"+name]
	return "tok_" + name, has
}

// customer finds a customer. cus_42 and cus_test… are always there and pay with a Visa card, so
// that examples need no preparation.
func (st *state) customer(id string, live bool) *customer {
	if c := st.customers[id]; c != nil && c.Live == live {
		return c
	}
	if id == "cus_42" || strings.HasPrefix(id, "cus_test") {
		return &customer{ID: id, Created: 1700000000, Live: live, Source: "tok_visa", Description: "Always there in the simulator"}
	}
	return nil
}
