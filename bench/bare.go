package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/oklog/ulid/v2"
)

// bareServer is B: what an honest programmer writes who knows that the claim must be committed
// before the provider is called, and no more. It has no authentication, validation, replay or log.
// Everything that it leaves out makes B faster, so it is a hard opponent.
type bareServer struct {
	db            *pgxpool.Pool
	claim, settle statement
	owner         owner
	provider      string
	client        *http.Client
}

// chargeRequest is what a client sends.
type chargeRequest struct {
	Amount      int64             `json:"amount"`
	Currency    string            `json:"currency"`
	Source      string            `json:"source"`
	Description string            `json:"description"`
	Metadata    map[string]string `json:"metadata"`
}

// providerCharge has the members of the provider's answer that B reads.
type providerCharge struct {
	ID             string     `json:"id"`
	Amount         int64      `json:"amount"`
	AmountCaptured int64      `json:"amount_captured"`
	Captured       bool       `json:"captured"`
	Currency       string     `json:"currency"`
	Status         string     `json:"status"`
	Outcome        assessment `json:"outcome"`
}

func bareMain(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("bench bare", flag.ContinueOnError)
	listen := fs.String("listen", "127.0.0.1:0", "address")
	database := fs.String("database", os.Getenv("DATABASE_URL"), "a migrated database")
	providerURL := fs.String("provider", "http://127.0.0.1:8081", "where the provider is")
	pool := fs.Int("pool", 8, "database connections")
	onLean := fs.Bool("lean", false, "the database has the lean schema")
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	cfg, err := pgxpool.ParseConfig(*database)
	if err != nil {
		return err
	}
	cfg.MaxConns = int32(*pool) //nolint:gosec // a small number
	db, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer db.Close()
	on := &ours
	if *onLean {
		on = &lean
	}
	s := &bareServer{
		db: db, claim: numbered(on.claim), settle: numbered(on.settle),
		provider: *providerURL + "/v1/charges",
	}
	// The default transport keeps two idle connections a host and would dial for nearly every call.
	s.client = &http.Client{
		Timeout: 20 * time.Second, Transport: &http.Transport{
			MaxIdleConnsPerHost: 10_000, IdleConnTimeout: time.Minute,
		},
	}
	if s.owner, err = on.owner(ctx, db); err != nil {
		return err
	}
	return s.serve(ctx, *listen)
}

// findOwner returns an account with a key.
func findOwner(ctx context.Context, db *pgxpool.Pool) (o owner, err error) {
	err = db.QueryRow(ctx,
		`SELECT account_id, id FROM api_keys WHERE revoked_at IS NULL ORDER BY id LIMIT 1`).Scan(
		&o.Account, &o.KeyID)
	return o, err
}

func (s *bareServer) serve(ctx context.Context, listen string) error {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.POST("/v1/charges", s.create)
	l, err := listenOn(ctx, listen)
	if err != nil {
		return err
	}
	e.Listener = l
	announce(l)
	go func() {
		<-untilOrphaned(ctx)
		_ = e.Close()
	}()
	if err := e.Start(""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *bareServer) create(c echo.Context) error {
	ctx := c.Request().Context()
	var r chargeRequest
	if err := c.Bind(&r); err != nil {
		return err
	}
	id := ulid.Make().String()
	v, err := s.claimed(ctx, c.Request().Header.Get("Idempotency-Key"), id, r)
	if err != nil {
		return err
	}
	p, err := s.call(ctx, id, r)
	if err != nil {
		return err
	}
	body, err := s.settled(ctx, v, p, r)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Location", "/v1/charges/ch_"+id)
	return c.JSONBlob(http.StatusCreated, body)
}

// claimed makes commit 1 and returns the values that commit 2 needs again.
func (s *bareServer) claimed(
	ctx context.Context, key, id string, r chargeRequest,
) (map[string]any, error) {
	params, err := json.Marshal(frozen{
		IdempotencyKey: "po_" + id, Tags: map[string]string{
			"operation": "op_" + id, "installation": benchInstallation,
		},
		Amount: r.Amount, Currency: r.Currency, Source: r.Source, Capture: true,
		Description: r.Description, Metadata: r.Metadata,
	})
	if err != nil {
		return nil, err
	}
	metadata, err := json.Marshal(r.Metadata)
	if err != nil {
		return nil, err
	}
	var token [16]byte
	_, _ = rand.Read(token[:])
	hash := sha256.Sum256(params)
	v := map[string]any{
		"account": leanAccount, "account_id": s.owner.Account, "api_key_id": s.owner.KeyID,
		"key": key, "operation_id": "op_" + id, "charge_id": "ch_" + id,
		"request_id": "req_" + id, "lease_token": hex.EncodeToString(token[:]),
		"request_hash": hash[:], "params": params,
		"amount": r.Amount, "description": r.Description, "metadata": string(metadata),
	}
	var operation string
	var created time.Time
	err = s.db.QueryRow(ctx, s.claim.sql, s.claim.args(v)...).Scan(&operation, &created)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, echo.NewHTTPError(http.StatusConflict, "key in use")
	}
	v["created"] = created.Unix()
	return v, err
}

// call calls the provider.
func (s *bareServer) call(
	ctx context.Context, id string, r chargeRequest,
) (p providerCharge, err error) {
	form := url.Values{"amount": {strconv.FormatInt(r.Amount, 10)}, "currency": {r.Currency},
		"source":  {r.Source},
		"capture": {"true"}, "description": {r.Description},
		"metadata[paidonce_operation]":    {"op_" + id},
		"metadata[paidonce_installation]": {benchInstallation}}
	for k, v := range r.Metadata {
		form.Set("metadata["+k+"]", v)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.provider,
		strings.NewReader(form.Encode()))
	if err != nil {
		return p, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer sk_test_x")
	req.Header.Set("Idempotency-Key", "po_"+id)
	res, err := s.client.Do(req)
	if err != nil {
		return p, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return p, fmt.Errorf("provider: %s", res.Status)
	}
	return p, json.NewDecoder(res.Body).Decode(&p)
}

// settled makes commit 2 and returns the answer.
func (s *bareServer) settled(
	ctx context.Context, v map[string]any, p providerCharge, r chargeRequest,
) ([]byte, error) {
	created, _ := v["created"].(int64)
	chargeID, _ := v["charge_id"].(string)
	eventID := "evt_" + ulid.Make().String()
	body, err := json.Marshal(charge{
		ID: chargeID, Object: "charge", Amount: r.Amount, AmountCaptured: p.AmountCaptured,
		Captured: p.Captured, Created: created,
		Currency: r.Currency, Description: &r.Description, Metadata: r.Metadata,
		Outcome: &p.Outcome, Paid: true,
		Provider: providerRef{"stripe", p.ID}, Status: p.Status,
	})
	if err != nil {
		return nil, err
	}
	payload, err := json.Marshal(newEvent(eventID, created, body))
	if err != nil {
		return nil, err
	}
	outcome, err := json.Marshal(p.Outcome)
	if err != nil {
		return nil, err
	}
	v["headers"] = []byte(`{"Content-Type":"application/json","Location":"/v1/charges/` + chargeID +
		`"}`)
	v["body"], v["payload"], v["outcome"], v["provider_id"], v["event_id"] = body, payload,
		string(outcome), p.ID, eventID
	var operation string
	err = s.db.QueryRow(ctx, s.settle.sql, s.settle.args(v)...).Scan(&operation)
	return body, err
}
