package charges

import (
	"encoding/json"
	"unicode/utf8"

	"paidonce/db"
	"paidonce/problem"
	"paidonce/provider"
)

// shippingTextMax is how many characters a text of shipping may have. Stripe takes 5,000, which no
// address has; ten texts of this length are still a small row.
const shippingTextMax = 500

// Shipping is where and to whom goods are sent, with Stripe's names and its nulls.
type Shipping struct {
	Address        Address `json:"address"`
	Carrier        *string `json:"carrier"`
	Name           *string `json:"name"`
	Phone          *string `json:"phone"`
	TrackingNumber *string `json:"tracking_number"`

	// what it is made of, and what is stored
	Known provider.Shipping `json:"-"`
}

// Address is a postal one.
type Address struct {
	City       *string `json:"city"`
	Country    *string `json:"country"`
	Line1      *string `json:"line1"`
	Line2      *string `json:"line2"`
	PostalCode *string `json:"postal_code"`
	State      *string `json:"state"`
}

// ShippingFrom takes texts by their names, such as address[city]; nil: none were given.
func ShippingFrom(texts map[string]string) *provider.Shipping {
	if texts == nil {
		return nil
	}
	s := &provider.Shipping{}
	for _, t := range s.Texts() {
		*t.Text = texts[t.Name]
	}
	return s
}

func shippingOf(s *provider.Shipping) *Shipping {
	if s == nil {
		return nil
	}
	a := s.Address
	return &Shipping{
		Address: Address{
			City: db.OrNil(a.City), Country: db.OrNil(a.Country), Line1: db.OrNil(a.Line1),
			Line2: db.OrNil(a.Line2), PostalCode: db.OrNil(a.PostalCode), State: db.OrNil(a.State),
		},
		Carrier: db.OrNil(s.Carrier), Name: db.OrNil(s.Name), Phone: db.OrNil(s.Phone),
		TrackingNumber: db.OrNil(s.TrackingNumber), Known: *s,
	}
}

// shippingColumn is what the database keeps: JSON without what is not given; empty: none.
func shippingColumn(s *Shipping) (string, error) {
	if s == nil {
		return "", nil
	}
	return jsonOf(&s.Known)
}

// shippingFrom reads what the database keeps; nil: none.
func shippingFrom(column []byte) (*Shipping, error) {
	if column == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	s := &provider.Shipping{}
	err := json.Unmarshal(column, s)
	return shippingOf(s), err
}

func (p Params) checkShipping() *problem.Error {
	s := p.Shipping
	switch {
	case s == nil:
		return nil
	case s.Address == provider.Address{}:
		return problem.ParameterMissing.Of("shipping[address]",
			"shipping[address] is required with shipping, and at least one text of it.")
	case s.Name == "":
		return problem.ParameterMissing.Of("shipping[name]",
			"shipping[name] is required with shipping.")
	}
	for _, t := range s.Texts() {
		if utf8.RuneCountInString(*t.Text) > shippingTextMax {
			return problem.ParameterTooLong.Of(
				t.Param(), "%s may have at most %d characters.", t.Param(), shippingTextMax,
			)
		}
	}
	return nil
}
