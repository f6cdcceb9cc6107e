package charges

import "strings"

// currencies maps the active ISO 4217 codes of money (no metals, funds or test codes), in lower
// case, to the number of their decimals in amounts. Amounts are always in minor units; the decimals
// are for showing them to people. They are ISO's but for three currencies, whose minor unit is what
// the provider takes it for: Stripe has whole ariary, and hundredths of krónur and of Ugandan
// shillings.
var currencies = func() map[string]int {
	m := map[string]int{}
	for decimals, codes := range map[int]string{
		0: "bif clp djf gnf jpy kmf krw mga pyg rwf uyi vnd vuv xaf xof xpf",
		2: `aed afn all amd aoa ars aud awg azn bam bbd bdt bgn bmd bnd bob brl bsd btn bwp byn bzd cad cdf chf cny cop crc cup
			cve czk dkk dop dzd egp ern etb eur fjd fkp gbp gel ghs gip gmd gtq gyd hkd hnl htg huf idr ils inr irr isk jmd kes
			kgs khr kpw kyd kzt lak lbp lkr lrd lsl mad mdl mkd mmk mnt mop mru mur mvr mwk mxn myr mzn nad ngn nio nok
			npr nzd pab pen pgk php pkr pln qar ron rsd rub sar sbd scr sdg sek sgd shp sle sos srd ssp stn svc syp szl thb
			tjs tmt top try ttd twd tzs uah ugx usd uyu uzs ved ves wst xcd xcg yer zar zmw zwg ang`,
		3: "bhd iqd jod kwd lyd omr tnd",
	} {
		for _, code := range strings.Fields(codes) {
			m[code] = decimals
		}
	}
	return m
}()

// Decimals returns how many decimals amounts of a currency have when they are shown to people: 2
// for usd, 0 for jpy, 3 for kwd. The code is in lower case; one that is not known has 2, as nearly
// all have.
func Decimals(currency string) int {
	if n, ok := currencies[currency]; ok {
		return n
	}
	return 2
}

// amountsLong has the currencies whose units are so small that Stripe takes more than eight digits.
// Its pages differ on some of them: these are the longest. What is too long for a payer's card
// network, Stripe refuses.
var amountsLong = map[string]int64{
	"cop": 9_999_999_999, "huf": 9_999_999_999, "idr": 999_999_999_999, "inr": 999_999_999,
	"jpy": 9_999_999_999, "lbp": 999_999_999_999,
}

const (
	amountUsual = 99_999_999 // eight digits: what Stripe's reference says of amounts
	// AmountMost is the largest amount of any currency.
	AmountMost = 999_999_999_999
)

// amountMax is the largest amount of a currency.
func amountMax(currency string) int64 {
	if most, long := amountsLong[currency]; long {
		return most
	}
	return amountUsual
}
