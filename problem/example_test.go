package problem_test

import (
	"fmt"

	"paidonce/problem"
)

// The body has Stripe's shape, and an advice for programs.
func ExampleError_Body() {
	e := problem.AmountTooLarge.Of(
		"amount", "amount must be at most %d, in minor units.", 99_999_999,
	)
	fmt.Printf("%d\n%s", e.Code.Status(), e.Body("req_1"))
	// Output:
	// 400
	// {"error":{"type":"invalid_request_error","code":"amount_too_large","message":"amount must be at most 99999999, in minor units.","param":"amount","request_id":"req_1","advice":"fix_and_use_new_key"}}
}
