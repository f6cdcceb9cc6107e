package charges_test

import (
	"errors"
	"fmt"

	"paidonce/charges"
	"paidonce/problem"
)

// What a client asks for is checked before its key is spent.
func ExampleParams_Validate() {
	for _, p := range []charges.Params{
		{Amount: 2000, Currency: "usd", Source: "tok_visa"},
		{Amount: 0, Currency: "usd", Source: "tok_visa"},
		{Amount: 2000, Currency: "usd", Source: "4242 4242 4242 4242"},
	} {
		err := p.Validate()
		var e *problem.Error
		if errors.As(err, &e) {
			fmt.Println(e.Code, e.Param, "-", e.Message)
		} else {
			fmt.Println(err)
		}
	}
	// Output:
	// <nil>
	// parameter_invalid_integer amount - amount must be at least 1, in minor units.
	// parameter_invalid source - source must be a token of the payment provider; card numbers are refused and not stored.
}
