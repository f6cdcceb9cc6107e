package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"paidonce/charges"
	"paidonce/db"
	"paidonce/outbox/receipt"
)

// openReceipts creates the mailer, if there is a mail server, and switches receipts on. This comes
// before the first charge whose receipt is ours to send.
func (a *app) openReceipts(ctx context.Context) error {
	if a.cfg.SMTPURL == "" {
		return nil
	}
	from := a.cfg.smtpFrom
	if from == nil {
		from = a.cfg.smtp.Sender()
	}
	m := receipt.New(receipt.Config{
		Pool: a.pool, Held: a.guard.HeldOrCheck, Server: a.cfg.smtp, From: from,
		Decimals: charges.Decimals, Log: a.log, TTL: a.cfg.EventTTL, OnResult: a.metrics.RecordReceipt,
	})
	if err := m.Begin(ctx); err != nil {
		return fmt.Errorf("receipts: %w", err)
	}
	a.log.InfoContext(ctx, "receipts are mailed", "server", a.cfg.smtp.String(),
		"from", from.Address)
	a.receipts = m
	return nil
}

func (a *app) receiptCounts() receipt.Counts {
	if a.receipts == nil {
		return receipt.Counts{}
	}
	return a.receipts.Counts()
}

func newReceiptsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "receipts",
		Short: "Receipt mails: list",
		Long: `With PAIDONCE_SMTP_URL the relay mails a receipt, at most once, to the receipt_email
of each charge whose money was taken. list shows the state of each.

States: pending; sending; sent: the mail server accepted it; refused: the mail
server refused it; unknown: nobody knows whether it was accepted, and it is not sent
again; expired: it could not be sent within a day.`,
		Example: "  paidonce receipts list --state unknown",
	}
	c.AddCommand(newReceiptsListCommand())
	return c
}

type receiptJSON struct {
	Charge    string  `json:"charge"`
	Account   string  `json:"account"`
	Event     string  `json:"event"`
	Email     string  `json:"email"`
	State     string  `json:"state"`
	Attempts  int     `json:"attempts"`
	TakenAt   string  `json:"taken_at"`
	NextRunAt *string `json:"next_run_at"`
	LastAt    *string `json:"last_attempt_at"`
	LastCode  int     `json:"last_code"`
	LastError string  `json:"last_error"`
}

func newReceiptsListCommand() *cobra.Command {
	var listed listing
	var state string
	c := &cobra.Command{
		Use:   "list",
		Short: "List receipt mails, the newest first",
		Example: "  paidonce receipts list --state unknown\n" +
			"  paidonce receipts list --since 2h --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkListLimit(listed.limit); err != nil {
				return err
			}
			if state != "" && !slices.Contains(receipt.States, state) {
				return usageError{fmt.Errorf("--state must be one of %s",
					strings.Join(receipt.States, ", "))}
			}
			return withApp(cmd, needDatabase, func(ctx context.Context, a *app) error {
				from, account, err := listed.scope(ctx, a)
				if err != nil {
					return err
				}
				list, err := receipt.Newest(ctx, a.pool, receipt.Selection{
					Since: from, State: state, AccountID: account, Limit: listed.limit,
				})
				if err != nil {
					return err
				}
				return printReceipts(cmd.OutOrStdout(), list, listed.json)
			})
		},
	}
	c.Flags().StringVar(&state, "state", "", "only in this state")
	listed.flags(c)
	return c
}

func receiptToJSON(r receipt.Receipt) receiptJSON {
	row := receiptJSON{
		Charge: r.ChargeID, Account: r.AccountID, Event: r.EventID, Email: r.Address,
		State: r.State, Attempts: int(r.Attempts), TakenAt: rfc3339(r.TakenAt),
		NextRunAt: rfc3339Ptr(r.NextRunAt), LastAt: rfc3339Ptr(r.LastAttemptAt),
		LastError: db.OrEmpty(r.LastError),
	}
	if r.LastCode != nil {
		row.LastCode = int(*r.LastCode)
	}
	return row
}

func printReceipts(out io.Writer, list []receipt.Receipt, asJSON bool) error {
	return printList(out, asJSON, list, receiptToJSON,
		"CHARGE,ACCOUNT,EMAIL,TAKEN,ATTEMPTS,STATE,REASON", func(r receipt.Receipt) []any {
			return []any{
				r.ChargeID, r.AccountID, r.Address, rfc3339(r.TakenAt), r.Attempts, r.State,
				db.OrEmpty(r.LastError),
			}
		})
}
