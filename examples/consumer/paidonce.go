package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// pullEvery is how long an event waits at most before -pull reads it.
	pullEvery = time.Second
	// pageMax is in bytes: a hundred events of the largest size.
	pageMax = 100 * bodyMax
)

// paidonce is the API.
type paidonce struct {
	url, key string
	client   http.Client
}

// register makes Paidonce send events to address, and returns the secret that signs them. Repeating
// it at each start changes nothing.
func (p *paidonce) register(ctx context.Context, address string) (secret string, err error) {
	var endpoint struct{ Secret string }
	err = p.call(ctx, http.MethodPut, "/v1/webhook_endpoints/example-consumer",
		map[string]string{"url": address, "description": "examples/consumer"}, &endpoint)
	return endpoint.Secret, err
}

// call sends a request and decodes the answer.
func (p *paidonce) call(ctx context.Context, method, path string, body, into any) error {
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(p.url, "/")+path, &sent)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+p.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(io.LimitReader(res.Body, pageMax))
	if err != nil {
		return err
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s: %.500s", method, path, res.Status, got)
	}
	return json.Unmarshal(got, into)
}

// pull reads events until ctx ends.
func (c *consumer) pull(ctx context.Context, p *paidonce) {
	for ctx.Err() == nil {
		more, err := c.page(ctx, p)
		if err != nil && ctx.Err() == nil {
			slog.Error("events cannot be read; once more", "cause", err)
		}
		if more && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(pullEvery):
		}
	}
}

// page reads the events after the last one. The cursor moves in the transaction of the effect, and
// only from where it was found, since another process may be reading, too.
func (c *consumer) page(ctx context.Context, p *paidonce) (more bool, err error) {
	var last string
	if err := c.db.QueryRow(ctx, `SELECT event_id FROM books.reading`).Scan(&last); err != nil {
		return false, err
	}
	query := url.Values{"limit": {"100"}}
	if last != "" {
		query.Set("starting_after", last)
	}
	var page struct {
		Data    []event
		HasMore bool `json:"has_more"`
	}
	if err := p.call(ctx, http.MethodGet, "/v1/events?"+query.Encode(), nil, &page); err != nil {
		return false, err
	}
	for _, e := range page.Data {
		var fresh bool
		err := pgx.BeginFunc(ctx, c.db, func(tx pgx.Tx) error {
			moved, err := tx.Exec(ctx, `UPDATE books.reading SET event_id = $1 WHERE event_id = $2`,
				e.ID, last)
			if err == nil && moved.RowsAffected() == 0 {
				err = errors.New("somebody else has read on")
			}
			if err != nil {
				return err
			}
			fresh, err = take(ctx, tx, e)
			return err
		})
		if err != nil {
			return false, err
		}
		last = e.ID
		slog.Info(did(fresh, "read"), "id", e.ID, "type", e.Type, "object", e.Data.Object.ID,
			"sequence", e.Sequence)
	}
	return page.HasMore, nil
}
