package charges

import (
	"cmp"
	"errors"

	"paidonce/db"
	"paidonce/idemkeys"
	"paidonce/problem"
	"paidonce/provider"
)

// A key's result is stored as the HTTP answer that all its callers get. The functions here build
// it; nothing else in this package knows statuses, headers and paths.

// The paths of the objects in answers.
const (
	chargesPath = "/v1/charges/"
	refundsPath = "/v1/refunds/"
)

// createdAnswer is the answer with an object that was created at this path.
func createdAnswer(path string, object any) idemkeys.Answer {
	a := okAnswer(object)
	a.Code, a.Header["Location"] = problem.Created, path
	return a
}

// okAnswer is the answer with an object that was there before.
func okAnswer(object any) idemkeys.Answer {
	return idemkeys.Answer{Code: problem.OK, Header: jsonHeader(), Body: problem.Render(object)}
}

// errorAnswer is the answer with an error.
func errorAnswer(op *idemkeys.Operation, e *problem.Error) idemkeys.Answer {
	return idemkeys.Answer{Code: e.Code.Status(), Header: jsonHeader(), Body: e.Body(op.RequestID)}
}

func jsonHeader() map[string]string { return map[string]string{"Content-Type": "application/json"} }

// refusal is the error for a refusal of the provider: a decline, or a request that it will not
// carry out. charge is our charge's id. what names what was refused, in case the provider gives no
// message.
func refusal(code problem.Code, no *provider.Refusal, charge, what string) *problem.Error {
	e := &problem.Error{Code: code, ProviderCode: no.Code, Param: no.Param, Charge: charge}
	e.Message = cmp.Or(no.Message, "The payment provider refused the "+what+".")
	if code == problem.CardDeclined {
		e.DeclineCode = no.DeclineCode
	}
	return e
}

// ofCharge is a code's usual error, about one of our charges.
func ofCharge(code problem.Code, charge string) *problem.Error {
	e := code.New()
	e.Charge = charge
	return e
}

// withCharge names the charge that a refusal is about.
func withCharge(charge db.Charge, err error) error {
	var refused *problem.Error
	if errors.As(err, &refused) {
		refused.Charge = charge.ID
	}
	return err
}
