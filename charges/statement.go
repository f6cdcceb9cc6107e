package charges

import (
	"strings"

	"paidonce/problem"
)

// What a payer's statement shows.

// checkDescriptors holds both texts to the rules of Stripe, but for one: that a suffix has a letter
// is left to Stripe, since keys may have its refusal as their answer. They may be given together:
// of a card, the suffix counts then.
func (p Params) checkDescriptors() *problem.Error {
	s := p.StatementDescriptor
	if s != "" && (len(s) < DescriptorMin || !printed(s) || !strings.ContainsFunc(s, isLetter)) {
		return problem.ParameterInvalid.Of("statement_descriptor",
			"statement_descriptor must have %d to %d printable ASCII characters, at least one letter, and none of %s.",
			DescriptorMin, SuffixMax, suffixForbidden)
	}
	if !printed(p.StatementDescriptorSuffix) {
		return problem.ParameterInvalid.Of("statement_descriptor_suffix",
			"statement_descriptor_suffix may have at most %d printable ASCII characters, none of %s.", SuffixMax, suffixForbidden)
	}
	return nil
}

// printed reports whether card networks print a text.
func printed(s string) bool {
	return len(s) <= SuffixMax && !strings.ContainsAny(s, suffixForbidden) && printableASCII(s)
}

// isLetter is about ASCII.
func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

func printableASCII(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// checkFlow refuses what charges in this flow cannot have. Charges through intents are made with
// cards, and for these Stripe takes no whole descriptor.
func (p Params) checkFlow(intents bool) *problem.Error {
	switch {
	case !intents:
		return p.checkNoPayer()
	case p.StatementDescriptor != "":
		return problem.ParameterInvalid.Of("statement_descriptor",
			"statement_descriptor needs a server with STRIPE_FLOW=charges: with "+
				"STRIPE_FLOW=payment_intents Stripe refuses it for cards. Use "+
				"statement_descriptor_suffix.")
	}
	return nil
}
