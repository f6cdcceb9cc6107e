package stripesim

import (
	"cmp"
	"strings"
)

// cardKind is what is shown of a card, and what happens when it is charged.
type cardKind struct {
	brand, display, last4 string
	decline               string // key of declines; empty: succeeds
	funding               string // empty: credit
	dispute               bool   // succeeds, then is disputed
	// the payer has to authenticate; a plain charge is declined, as nobody asks them there
	authenticate bool
	afterwards   string // decline_code once they have; empty: succeeds
	debit        bool   // of a bank account: stays pending until EndDebit
	// refused when it is attached to a customer, not only when it is charged
	badAttach bool
}

// testCards are the tokens that exist. Stripe has more; a token that isn't here doesn't exist here.
var testCards = map[string]cardKind{
	"tok_visa":                                 {brand: "visa", display: "Visa", last4: "4242"},
	"tok_visa_debit":                           {brand: "visa", display: "Visa", last4: "5556", funding: "debit"},
	"tok_mastercard":                           {brand: "mastercard", display: "MasterCard", last4: "4444"},
	"tok_amex":                                 {brand: "amex", display: "American Express", last4: "8431"},
	"tok_chargeDeclined":                       {brand: "visa", display: "Visa", last4: "0002", decline: "generic_decline", badAttach: true},
	"tok_chargeDeclinedInsufficientFunds":      {brand: "visa", display: "Visa", last4: "9995", decline: "insufficient_funds", badAttach: true},
	"tok_chargeDeclinedLostCard":               {brand: "visa", display: "Visa", last4: "9987", decline: "lost_card", badAttach: true},
	"tok_chargeDeclinedExpiredCard":            {brand: "visa", display: "Visa", last4: "0069", decline: "expired_card", badAttach: true},
	"tok_chargeDeclinedIncorrectCvc":           {brand: "visa", display: "Visa", last4: "0127", decline: "incorrect_cvc", badAttach: true},
	"tok_chargeDeclinedProcessingError":        {brand: "visa", display: "Visa", last4: "0119", decline: "processing_error", badAttach: true},
	"tok_chargeCustomerFail":                   {brand: "visa", display: "Visa", last4: "0341", decline: "generic_decline"},
	"btok_us_verified":                         {brand: "visa", display: "Visa", last4: "6789", debit: true},
	"tok_createDispute":                        {brand: "visa", display: "Visa", last4: "0259", dispute: true},
	"tok_threeDSecureRequired":                 {brand: "visa", display: "Visa", last4: "3063", decline: "authentication_required", authenticate: true},
	"tok_threeDSecure2Required":                {brand: "visa", display: "Visa", last4: "3220", decline: "authentication_required", authenticate: true},
	"tok_threeDSecureRequiredChargeDeclined":   {brand: "visa", display: "Visa", last4: "1629", decline: "authentication_required", authenticate: true, afterwards: "generic_decline"},
	"tok_visa_chargeDeclined":                  {brand: "visa", display: "Visa", last4: "0002", decline: "generic_decline", badAttach: true},
	"tok_visa_chargeDeclinedInsufficientFunds": {brand: "visa", display: "Visa", last4: "9995", decline: "insufficient_funds", badAttach: true},
	"tok_visa_chargeDeclinedLostCard":          {brand: "visa", display: "Visa", last4: "9987", decline: "lost_card", badAttach: true},
	"tok_visa_chargeDeclinedStolenCard":        {brand: "visa", display: "Visa", last4: "9979", decline: "stolen_card", badAttach: true},
	"tok_chargeDeclinedFraudulent":             {brand: "visa", display: "Visa", last4: "0019", decline: "fraudulent", badAttach: true},
}

// cardOf gives what is shown for a token, also for one that a later version of this table no longer
// has.
func cardOf(token string) cardKind {
	if c, ok := testCards[token]; ok {
		return c
	}
	return testCards["tok_visa"]
}

func (c cardKind) funds() string { return cmp.Or(c.funding, "credit") }

type decline struct{ code, message, param string }

// notHandled is the decline_code of what needs the payer where nobody may be asked.
const notHandled = "authentication_not_handled"

// declines maps a decline_code to the code and words that go with it. The empty code stands for
// "not declined".
var declines = map[string]decline{
	notHandled: {
		code:    "authentication_required",
		message: "This payment required an authentication action to complete, but `error_on_requires_action` was set.",
	},
	"generic_decline":         {code: "card_declined", message: "Your card was declined."},
	"insufficient_funds":      {code: "card_declined", message: "Your card has insufficient funds."},
	"lost_card":               {code: "card_declined", message: "Your card was declined."},
	"stolen_card":             {code: "card_declined", message: "Your card was declined."},
	"fraudulent":              {code: "card_declined", message: "Your card was declined."},
	"authentication_required": {code: "authentication_required", message: "Your card was declined. This transaction requires authentication."},
	"expired_card":            {code: "expired_card", message: "Your card has expired.", param: "exp_month"},
	"incorrect_cvc":           {code: "incorrect_cvc", message: "Your card's security code is incorrect.", param: "cvc"},
	"processing_error":        {code: "processing_error", message: "An error occurred while processing your card. Try again in a little bit."},
}

// currencies are the codes that Stripe charges in.
var currencies = set(`usd aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob brl bsd bwp byn bzd cad
cdf chf clp cny cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gnf gtq gyd hkd hnl hrk htg huf idr ils
inr isk jmd jod jpy kes kgs khr kmf krw kwd kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mur mvr mwk mxn myr mzn
nad ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sek sgd shp sle sos srd std szl thb
tjs tnd top try ttd twd tzs uah ugx uyu uzs vnd vuv wst xaf xcd xof xpf yer zar zmw`)

// minimums are the least amounts in minor units where they differ from 50.
var minimums = map[string]int64{
	"aed": 200, "bgn": 100, "czk": 1500, "dkk": 250, "gbp": 30, "hkd": 400, "huf": 17500, "mxn": 1000, "myr": 200, "nok": 300,
	"pln": 200, "ron": 200, "sek": 300, "thb": 1000,
}

func minimum(currency string) int64 {
	if m, ok := minimums[currency]; ok {
		return m
	}
	return 50
}

// maximums are the largest amounts in minor units where they differ from eight digits.
var maximums = map[string]int64{
	"cop": 9_999_999_999, "huf": 9_999_999_999, "idr": 999_999_999_999, "inr": 999_999_999, "jpy": 9_999_999_999, "lbp": 999_999_999_999,
}

func maximum(currency string) int64 {
	if m, ok := maximums[currency]; ok {
		return m
	}
	return 99_999_999
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

var (
	zeroDecimal  = set("bif clp djf gnf jpy kmf krw mga pyg rwf ugx vnd vuv xaf xof xpf")
	threeDecimal = set("bhd jod kwd omr tnd")
)
