package receipt

import (
	"context"
	"time"

	"paidonce/db"
)

// Selection selects receipts of any account, for operators.
type Selection struct {
	Since     time.Time
	State     string // "": all
	AccountID string // "": all
	Limit     int
}

// Receipt is a receipt as operators see it.
type Receipt struct {
	db.Receipt
	Address string
}

// Newest returns receipts, the newest first. Errors: the database's.
func Newest(ctx context.Context, pool db.Pool, s Selection) ([]Receipt, error) {
	rows, err := db.New().ReceiptsNewest(ctx, pool, db.ReceiptsNewestParams{
		Since: s.Since, State: db.OrNil(s.State), AccountID: db.OrNil(s.AccountID), MaxRows: int32(s.Limit), //nolint:gosec // a command's limit
	})
	if err != nil {
		return nil, err
	}
	list := make([]Receipt, 0, len(rows))
	for _, r := range rows {
		list = append(list, Receipt{r.Receipt, r.Address})
	}
	return list, nil
}
