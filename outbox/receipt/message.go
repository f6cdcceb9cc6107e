package receipt

import (
	"bytes"
	"cmp"
	"fmt"
	"net/mail"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"

	"paidonce/db"
)

// compose writes the mail. It returns an error for an address that cannot be mailed to.
func (m *Mailer) compose(row db.ReceiptsClaimRow, now time.Time) (envelope, error) {
	to, err := toWire(row.Address)
	if err != nil {
		return envelope{}, err
	}
	merchant := oneLine(row.AccountName)
	amount := amountText(row.AmountCaptured, m.cfg.Decimals(row.Currency), row.Currency)
	subject := fmt.Sprintf("Your payment of %s to %s", amount, merchant)
	if !row.Livemode {
		subject = "[Test] " + subject
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(&mail.Address{
		Name: cmp.Or(m.cfg.From.Name, merchant), Address: m.cfg.From.Address,
	})
	msg.ToMailAddress(&mail.Address{Address: to})
	msg.Subject(subject)
	msg.SetDateWithValue(now)
	// The id is made from the charge's, so that a mail archive would recognise a second mail for
	// the same charge.
	msg.SetMessageIDWithValue(row.ChargeID + m.cfg.From.Address[strings.LastIndexByte(m.cfg.From.Address, '@'):])
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no out-of-office answers
	msg.SetBodyString(gomail.TypeTextPlain, text(row, merchant, amount))
	var out bytes.Buffer
	if _, err := msg.WriteTo(&out); err != nil {
		return envelope{}, err
	}
	return envelope{from: m.cfg.From.Address, to: to, message: out.Bytes()}, nil
}

// text returns the body. Each text of a client is kept on one line, so that it cannot add lines
// that look like the receipt's own.
func text(row db.ReceiptsClaimRow, merchant, amount string) string {
	var b strings.Builder
	if !row.Livemode {
		b.WriteString("This is a test: no real money was moved.\n\n")
	}
	fmt.Fprintf(&b, "You paid %s to %s.\n\n", amount, merchant)
	for _, line := range [...][2]string{
		{"Amount", amount},
		{"Date", row.TakenAt.UTC().Format("2006-01-02 15:04 UTC")},
		{"For", oneLine(row.Description)},
		{"On your statement", oneLine(row.Suffix)},
		{"Reference", row.ChargeID},
	} {
		if line[1] != "" {
			fmt.Fprintf(&b, "%s: %s\n", line[0], line[1])
		}
	}
	b.WriteString("\nThis message was sent automatically, because this address was given with the payment.\n")
	return b.String()
}

// amountText returns an amount with its decimals and the currency's code: 20.00 USD, 500 JPY, 1.234
// KWD.
func amountText(minor int64, decimals int, currency string) string {
	digits := fmt.Sprintf("%0*d", decimals+1, minor)
	whole, part := digits[:len(digits)-decimals], digits[len(digits)-decimals:]
	if part != "" {
		whole += "." + part
	}
	return whole + " " + strings.ToUpper(currency)
}

// oneLine makes a client's text safe for a header or a line of the body. Characters that break
// lines, control a terminal or change the direction of the text become spaces.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029' ||
			unicode.Is(unicode.Bidi_Control, r)
	}), " ")
}
