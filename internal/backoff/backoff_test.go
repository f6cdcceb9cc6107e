package backoff

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestPausesGrowToTheMaximum(t *testing.T) {
	t.Parallel()
	p := Policy{First: 5 * time.Second, Max: time.Minute}
	for failures, want := range map[int]time.Duration{
		-1: 0, 0: 0, 1: 5 * time.Second, 2: 10 * time.Second, 3: 20 * time.Second,
		4: 40 * time.Second,
		5: time.Minute, 6: time.Minute, math.MaxInt: time.Minute,
	} {
		if got := p.Whole(failures); got != want {
			t.Errorf("after %d failures: %v, want %v", failures, got, want)
		}
	}
	if got := (Policy{First: time.Hour, Max: time.Minute}).Whole(1); got != time.Minute {
		t.Errorf("a first pause of %v, above the maximum", got)
	}
}

func TestPausesAreSpread(t *testing.T) {
	t.Parallel()
	p := Policy{First: time.Second, Max: time.Second}
	least, most := time.Hour, time.Duration(0)
	for range 10_000 {
		pause := p.After(1)
		least, most = min(least, pause), max(most, pause)
	}
	if least < 750*time.Millisecond || least > 760*time.Millisecond ||
		most > 1250*time.Millisecond || most < 1240*time.Millisecond {
		t.Errorf("from %v to %v, not a quarter around a second", least, most)
	}
	if p.After(0) != 0 || About(0) != 0 {
		t.Error("a pause where none is due")
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if !Sleep(ctx, time.Millisecond) {
			t.Error("cut short, although nothing had ended")
		}
		if Sleep(ctx, time.Hour) || time.Since(began) != time.Second {
			t.Errorf("slept for %v past its context", time.Since(began)-time.Second)
		}
		if Sleep(ctx, 0) {
			t.Error("a context that has ended is reported as slept out")
		}
	})
}
