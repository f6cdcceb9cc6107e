package provider

import "strings"

// Shipping is where and to whom goods are sent, with Stripe's names. Empty texts are not given.
type Shipping struct {
	Address        Address `json:"address"`
	Carrier        string  `json:"carrier,omitempty"`
	Name           string  `json:"name,omitempty"`
	Phone          string  `json:"phone,omitempty"`
	TrackingNumber string  `json:"tracking_number,omitempty"`
}

// Address is a postal one.
type Address struct {
	City       string `json:"city,omitempty"`
	Country    string `json:"country,omitempty"`
	Line1      string `json:"line1,omitempty"`
	Line2      string `json:"line2,omitempty"`
	PostalCode string `json:"postal_code,omitempty"`
	State      string `json:"state,omitempty"`
}

// ShippingText is one text of a Shipping, by the name that it has within, such as address[city].
type ShippingText struct {
	Name string
	Text *string
}

// Param is what Stripe calls the text: shipping[address][city].
func (t ShippingText) Param() string {
	group, rest, inside := strings.Cut(t.Name, "[")
	if inside {
		rest = "[" + rest
	}
	return "shipping[" + group + "]" + rest
}

// Texts are all texts of s, in the order in which they are sent.
func (s *Shipping) Texts() []ShippingText {
	return []ShippingText{
		{"address[city]", &s.Address.City}, {"address[country]", &s.Address.Country},
		{"address[line1]", &s.Address.Line1}, {"address[line2]", &s.Address.Line2},
		{"address[postal_code]", &s.Address.PostalCode}, {"address[state]", &s.Address.State},
		{"carrier", &s.Carrier}, {"name", &s.Name}, {"phone", &s.Phone},
		{"tracking_number", &s.TrackingNumber},
	}
}
