package backoff_test

import (
	"fmt"
	"time"

	"paidonce/internal/backoff"
)

// The pauses double until the longest; After spreads each by a quarter.
func ExamplePolicy_Whole() {
	p := backoff.Policy{First: time.Second, Max: time.Minute}
	for _, failures := range []int{1, 2, 3, 7} {
		fmt.Println(failures, p.Whole(failures))
	}
	// Output:
	// 1 1s
	// 2 2s
	// 3 4s
	// 7 1m0s
}
