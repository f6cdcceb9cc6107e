package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// postMain posts payloads as a relay does, without what makes it one.
func postMain(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("bench post", flag.ContinueOnError)
	url := fs.String("url", "", "where to")
	clients := fs.Int("clients", backlogClients, "how many at once")
	count := fs.Int64("count", 1000, "how many in all")
	if err := parseFlags(fs, args); err != nil {
		return err
	}
	if *clients < 1 || *count < 1 {
		return usageError{errors.New("--count and --clients must be positive")}
	}
	payload, _ := sampleRow(owner{})["payload"].([]byte)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: *clients}}
	var next atomic.Int64
	var all sync.WaitGroup
	failed := make(chan error, *clients)
	for range *clients {
		all.Go(func() {
			for n := next.Add(1); n <= *count; n = next.Add(1) {
				if err := post(ctx, client, *url, fmt.Sprint("evt_", n), payload); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func post(ctx context.Context, client *http.Client, url, id string, payload []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(payload))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Webhook-Id", id)
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", res.Status)
	}
	return nil
}
