package provider

// Released reports whether the provider has let go of what the charge had reserved: it was neither
// captured nor can it be.
func (c Charge) Released() bool {
	return c.Status == Succeeded && !c.Captured && c.AmountRefunded > 0 &&
		c.AmountRefunded >= c.Amount
}

// ReasonLapsed is the reason of a refund that the provider made of an authorisation because nobody
// had captured it in time.
const ReasonLapsed = "expired_uncaptured_charge"
