package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"paidonce/inbox"
	"paidonce/internal/world"
)

// News of a charge that is being made comes with every charge: that it is tried again is worth no
// warning. Any other reason is.
func TestNewsThatComesEarlyIsNoWarning(t *testing.T) {
	t.Parallel()
	w := world.New(t)
	for reason, warns := range map[error]bool{
		fmt.Errorf("settle: %w", inbox.Early(errors.New("somebody works on it"))): false,
		errors.New("not yet"): true,
	} {
		var said bytes.Buffer
		in := inbox.New(inbox.Config{Pool: w.Pool, Secrets: []string{world.Secret}, Log: slog.New(
			slog.NewTextHandler(&said, nil),
		),
			Apply: func(context.Context, inbox.Event, inbox.Mark) error { return reason }})
		w.Deliver(in, "evt_"+fmt.Sprint(warns), "x.y", "o")
		if n, err := in.RunOnce(t.Context(), 1); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if strings.Contains(said.String(), "level=WARN") != warns || !warns && said.Len() > 0 {
			t.Errorf("%v: %s", reason, said.String())
		}
	}
}
