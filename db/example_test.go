package db_test

import (
	"context"
	"fmt"

	"paidonce/db"
)

// Rows that are written at the same moment share a statement. Each has a fence of its own: here,
// that its id is free. The one that loses it is told so, and hurts nobody else.
func ExampleCommitter() {
	type row struct{ id, value string }
	table := map[string]string{}
	committer := db.Committer[row, string]{
		ID: func(r row) string { return r.id },
		// a statement of SQL, in the product
		Write: func(_ context.Context, rows []row) (map[string]string, error) {
			won := map[string]string{}
			for _, r := range rows {
				if _, taken := table[r.id]; !taken {
					table[r.id], won[r.id] = r.value, "written: "+r.value
				}
			}
			return won, nil
		},
	}
	for _, r := range []row{{"charge-1", "2000 usd"}, {"charge-1", "2001 usd"}, {"charge-2", "500 eur"}} {
		got, won, err := committer.Do(context.Background(), r)
		fmt.Printf("%s won: %t, %q, %v\n", r.id, won, got, err)
	}
	// Output:
	// charge-1 won: true, "written: 2000 usd", <nil>
	// charge-1 won: false, "", <nil>
	// charge-2 won: true, "written: 500 eur", <nil>
}
