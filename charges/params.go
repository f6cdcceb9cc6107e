package charges

import (
	"fmt"
	"net/mail"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of the parameters, Stripe's where it has one.
const (
	AmountMin           = 1
	AmountMax           = 99_999_999 // eight digits: Stripe's maximum
	MetadataPairsMax    = 50
	MetadataKeyMax      = 40  // characters
	MetadataValueMax    = 500 // characters
	DescriptionMax      = 1000
	SuffixMax           = 22 // what card networks print
	EmailMax            = 254
	ProviderIDMax       = 255
	metadataReservedFor = "paidonce_" // our own names at the provider
)

// Params is what a client asks for. Empty strings and nil mean absent.
type Params struct {
	Amount                    int64  // minor units, AmountMin to AmountMax
	Currency                  string // ISO 4217, lower case
	Customer                  string // the provider's customer; exactly one of Customer and Source
	Source                    string // a provider token
	Capture                   bool   // false: authorise only
	Description               string
	Metadata                  map[string]string
	StatementDescriptorSuffix string
	ReceiptEmail              string
}

// ParamError says which parameter is wrong, and how. Code is Stripe's where Stripe has one.
type ParamError struct {
	Param   string // may be empty when it is about several
	Code    string
	Message string
}

func (e *ParamError) Error() string { return e.Message }

func invalid(param, code, format string, args ...any) *ParamError {
	return &ParamError{Param: param, Code: code, Message: fmt.Sprintf(format, args...)}
}

var (
	providerToken = regexp.MustCompile(`^[a-z]+_[A-Za-z0-9_]+$`)
	cardDigits    = regexp.MustCompile(`^[0-9 -]{12,24}$`)
	// Card networks print a narrow alphabet; Stripe refuses these five.
	suffixForbidden = `<>\'"*`
)

// Validate checks everything that can be known without asking the provider. The first fault is returned as a [*ParamError].
func (p Params) Validate() error {
	for _, check := range []func() *ParamError{p.checkAmount, p.checkPayer, p.checkTexts, p.checkMetadata} {
		if e := check(); e != nil {
			return e
		}
	}
	return nil
}

func (p Params) checkAmount() *ParamError {
	switch {
	case p.Amount < AmountMin:
		return invalid("amount", "parameter_invalid_integer", "amount must be at least %d, in minor units.", AmountMin)
	case p.Amount > AmountMax:
		return invalid("amount", "amount_too_large", "amount must be at most %d, in minor units.", AmountMax)
	}
	if _, ok := currencies[p.Currency]; !ok {
		return invalid("currency", "invalid_currency", "currency must be the code of an ISO 4217 currency, such as usd.")
	}
	return nil
}

func (p Params) checkPayer() *ParamError {
	switch {
	case p.Customer == "" && p.Source == "":
		return invalid("source", "parameter_missing", "One of source and customer is required.")
	case p.Customer != "" && p.Source != "":
		return invalid("customer", "parameter_invalid", "Only one of source and customer may be given.")
	}
	for name, v := range map[string]string{"customer": p.Customer, "source": p.Source} {
		switch {
		case v == "":
		case cardDigits.MatchString(v):
			return invalid(name, "parameter_invalid", "%s must be a token of the payment provider; card numbers are refused and not stored.", name)
		case len(v) > ProviderIDMax || !providerToken.MatchString(v):
			return invalid(name, "parameter_invalid", "%s must be an id of the payment provider, such as tok_visa or cus_42.", name)
		}
	}
	return nil
}

func (p Params) checkTexts() *ParamError {
	if utf8.RuneCountInString(p.Description) > DescriptionMax {
		return invalid("description", "parameter_invalid_string_too_long", "description may have at most %d characters.", DescriptionMax)
	}
	if s := p.StatementDescriptorSuffix; s != "" {
		if len(s) > SuffixMax || strings.ContainsAny(s, suffixForbidden) || !printableASCII(s) {
			return invalid("statement_descriptor_suffix", "parameter_invalid",
				"statement_descriptor_suffix may have at most %d printable ASCII characters, none of %s.", SuffixMax, suffixForbidden)
		}
	}
	if s := p.ReceiptEmail; s != "" {
		if a, err := mail.ParseAddress(s); err != nil || a.Address != s || len(s) > EmailMax || strings.ContainsFunc(s, unprintable) {
			return invalid("receipt_email", "email_invalid", "receipt_email must be an e-mail address.")
		}
	}
	return nil
}

func (p Params) checkMetadata() *ParamError {
	if len(p.Metadata) > MetadataPairsMax {
		return invalid("metadata", "parameter_invalid", "metadata may have at most %d pairs.", MetadataPairsMax)
	}
	for k, v := range p.Metadata {
		param := "metadata[" + k + "]"
		switch {
		case k == "" || utf8.RuneCountInString(k) > MetadataKeyMax || strings.ContainsAny(k, "[]"):
			return invalid("metadata", "parameter_invalid",
				"The keys of metadata must have 1 to %d characters, and no square brackets.", MetadataKeyMax)
		case strings.HasPrefix(k, metadataReservedFor):
			return invalid(param, "parameter_invalid", "Metadata keys that begin with %s are reserved.", metadataReservedFor)
		case utf8.RuneCountInString(v) > MetadataValueMax:
			return invalid(param, "parameter_invalid_string_too_long", "The values of metadata may have at most %d characters.", MetadataValueMax)
		}
	}
	return nil
}

// unprintable: no line or paragraph separators, no controls of direction, which make an address look like another.
func unprintable(r rune) bool { return !unicode.IsPrint(r) }

func printableASCII(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}
