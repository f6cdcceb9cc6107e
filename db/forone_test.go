package db_test

import (
	"regexp"
	"strings"
	"testing"

	"paidonce/db"
)

// The statements of a charge have a form for one row: the same text, but for the table of its rows.
func TestForOneChangesOnlyTheTableOfRows(t *testing.T) {
	t.Parallel()
	q := db.New()
	one := []string{""}
	claim := db.ChargeClaimParams{
		ApiKeyIds: one, AccountIds: one, Keys: one, OperationIds: one, Kinds: one, HashVersions: []int16{1},
		RequestHashes: [][]byte{{1}}, RequestIds: one, Params: [][]byte{{1}}, RecoveryPoints: one,
		LeaseTokens: one, ChargeIds: one, Amounts: []int64{1}, Currencies: one, Captures: []bool{true},
		Customers: one, Descriptions: one, Metadata: one, ReceiptEmails: one, Suffixes: one,
		Livemodes: []bool{true}, OwnReceipts: []bool{true},
		MerchantReferences: one, DuplicatesOf: one, Shippings: one, Descriptors: one,
	}
	settle := db.ChargeSettleParams{
		AccountIds: one, Keys: one, OperationIds: one, LeaseTokens: one, RecoveryPoints: one,
		KeyStatuses: one, ResponseCodes: []int16{201}, ResponseHeaders: [][]byte{{1}},
		ResponseBodies: [][]byte{{1}}, ChargeIds: one, Statuses: one, AmountsCaptured: []int64{1},
		Captured: []bool{true}, Disputed: []bool{true}, FailureCodes: one, FailureMessages: one,
		Outcomes: one, ProviderIds: one, EventIds: one, EventTypes: one, EventPayloads: [][]byte{{1}},
		LogEvents: one, LogActors: one, LogDetails: one, IntentIds: one, NextActions: one, Details: one,
	}
	for name, run := range map[string]func(db.DBTX) error{
		"ChargeClaim":  func(on db.DBTX) error { _, err := q.ChargeClaim(t.Context(), on, claim); return err },
		"ChargeSettle": func(on db.DBTX) error { _, err := q.ChargeSettle(t.Context(), on, settle); return err },
	} {
		var many, single overhearing
		_, _ = run(&many), run(db.ForOne(&single))
		if many.sql == single.sql || strings.Contains(single.sql, "unnest") {
			t.Errorf("%s has no form of its own for one row:\n%s", name, single.sql)
		}
		for _, v := range single.values {
			switch v.(type) {
			case []string, []int64, []int16, []bool, [][]byte:
				t.Errorf("%s for one row has the array %v", name, v)
			}
		}
		// From the end of the table of rows on, the texts are the same.
		rest := regexp.MustCompile(`(?s)\n\), won AS.*`)
		if a, b := rest.FindString(many.sql), rest.FindString(single.sql); a == "" || a != b {
			t.Errorf("%s: the forms differ in more than the table of rows:\n%s\n%s", name, many.sql, single.sql)
		}
	}
}
