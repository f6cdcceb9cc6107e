package main

import (
	"context"
	"time"
)

// What the extra cells are made of.
const (
	replayClients    = 32
	calmClients      = 32  // make charges while the storm goes on
	serversClients   = 64  // of one server, and then of several together
	stormClients     = 100 // all on one key
	referenceClients = 32  // make charges without a reference, and with one each
	beforeClients    = 32  // make charges with another binary, and with this one
	inFlightDelay    = 5 * time.Second
	// twice the provider's time: all clients come by at least once
	inFlightMeasure = 10 * time.Second
)

// stormHold is how long the provider takes for the storm's charge: half of the time, so that half
// of the storm is answered with 409 and the other half with a replay. It stays below the product's
// time limit for a provider call.
func stormHold(c config) time.Duration { return min(c.Warmup+c.Measure/2, 15*time.Second) }

// binaryOf is the product that a cell measures.
func (b *bench) binaryOf(c cell) string {
	if c.Kind == "before" {
		return b.before
	}
	return b.binary
}

// template is the database that a cell's is copied from.
func (c cell) template() string {
	if c.Kind == "before" {
		return beforeDB
	}
	return c.System.shape().template
}

// extras measures, of the product only, what --replay, --servers, --references, --intents,
// --before, --inflight, --sweep and --backlog ask for.
func (b *bench) extras(ctx context.Context, round int) error {
	var cells []cell
	if b.cfg.Replay {
		cells = append(cells,
			cell{System: Product, Kind: "replay", Clients: replayClients, Round: round},
			cell{System: Product, Kind: "calm", Clients: calmClients, Round: round},
			cell{System: Product, Kind: "storm", Clients: calmClients, Round: round})
	}
	if b.cfg.Servers > 0 {
		for _, kind := range rotated([]string{"server", "servers"}, round) {
			cells = append(cells, cell{
				System: Product, Kind: kind, Clients: serversClients, Round: round,
			})
		}
	}
	if b.cfg.References {
		for _, kind := range rotated([]string{"none", "reference"}, round) {
			cells = append(cells, cell{
				System: Product, Kind: kind, Clients: referenceClients, Round: round,
			})
		}
	}
	if b.cfg.Before != "" {
		for _, kind := range rotated([]string{"before", "after"}, round) {
			cells = append(cells, cell{
				System: Product, Kind: kind, Clients: beforeClients, Round: round,
			})
		}
	}
	if b.cfg.Intents {
		cells = append(cells, intentCells(round)...)
	}
	if b.cfg.InFlight > 0 {
		cells = append(cells, cell{
			System: Product, Kind: "inflight", Clients: b.cfg.InFlight, Delay: inFlightDelay,
			Round: round,
		})
	}
	if b.cfg.Sweep > 0 {
		for _, kind := range rotated([]string{"empty", "full", "sweep"}, round) {
			cells = append(cells, sweepCell(kind, round))
		}
	}
	if b.cfg.Backlog > 0 {
		cells = append(cells, backlogCell("reconcile", round))
		for _, kind := range rotated([]string{"relay", "posts"}, round) {
			cells = append(cells, backlogCell(kind, round))
		}
	}
	for _, c := range cells {
		if err := b.measure(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// brew starts the storm of a storm cell: a driver of its own, so that its CPU is not counted as the
// others'.
func (b *bench) brew(c cell, s *stage) (*child, error) {
	if c.Kind != "storm" {
		return nil, nil //nolint:nilnil // no storm, no process; a nil child can be stopped
	}
	return b.startDriver("storm-driver", stormClients, "storm", s.targets[0])
}

// weathered waits for the storm's end.
func (c *child) weathered(ctx context.Context) (driven, error) {
	for _, line := range []string{"measure", "measured"} {
		if err := c.expect(line); err != nil {
			return driven{}, err
		}
	}
	return c.outcome(ctx)
}
