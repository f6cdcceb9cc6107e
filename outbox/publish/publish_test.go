package publish_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"paidonce/db"
	"paidonce/internal/dbtest"
	"paidonce/outbox"
	"paidonce/outbox/publish"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func newStore(t *testing.T) (*outbox.Store, *pgxpool.Pool) {
	pool, err := db.Open(dbtest.New(t), 8)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return outbox.New(outbox.Config{Pool: pool}), pool
}

func add(t *testing.T, pool *pgxpool.Pool, from, to int) {
	t.Helper()
	_, err := pool.Exec(context.Background(), `INSERT INTO outbox (event_id, account_id, type, operation_id, object_id, payload)
		SELECT 'evt_' || lpad(i::text, 6, '0'), 'acct_1', 'charge.succeeded', 'op_' || i, 'ch_' || i % 10, convert_to('{"n":' || i || '}', 'UTF8') FROM generate_series($1::int, $2::int) i`, from, to)
	if err != nil {
		t.Fatal(err)
	}
}

func startNATS(t *testing.T, dir string, port int) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	return s
}

// readNATS returns the ids of all messages in order.
func readNATS(t *testing.T, url string) (ids []string) {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "PAIDONCE")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := info.State.FirstSeq; n <= info.State.LastSeq && n > 0; n++ {
		m, err := stream.GetMsg(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		if m.Subject != "paidonce.events.acct_1.charge.succeeded" {
			t.Errorf("subject %s", m.Subject)
		}
		ids = append(ids, m.Header.Get("Nats-Msg-Id"))
	}
	return ids
}

// TestNATS: every event is in the stream once and in order, also when several publish and when one
// dies before it moves its cursor.
func TestNATS(t *testing.T) {
	store, pool := newStore(t)
	dir := t.TempDir()
	s := startNATS(t, dir, -1)
	url := s.ClientURL()
	const events = 2000
	add(t, pool, 1, events)
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			p, err := publish.NewNATS(url)
			if err != nil {
				t.Error(err)
				return
			}
			defer p.Close()
			if _, err := outbox.NewStream(store, p, quiet).RunOnce(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	// As after a crash between the acknowledgement and the cursor.
	if _, err := pool.Exec(t.Context(), `UPDATE outbox_cursors SET position = (SELECT position FROM outbox WHERE event_id = 'evt_001300')`); err != nil {
		t.Fatal(err)
	}
	p, err := publish.NewNATS(url)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	stream := outbox.NewStream(store, p, quiet)
	if n, err := stream.RunOnce(t.Context()); err != nil || n != 700 {
		t.Errorf("got %d, %v, want 700", n, err)
	}
	check := func(want int) {
		t.Helper()
		ids := readNATS(t, url)
		if len(ids) != want {
			t.Errorf("%d messages, want %d", len(ids), want)
		}
		for i, id := range ids {
			if id != fmt.Sprintf("evt_%06d", i+1) {
				t.Errorf("message %d is %s", i+1, id)
				break
			}
		}
	}
	check(events)

	// While the server is away nothing is counted as published; when it is back all is.
	port := s.Addr().String()
	s.Shutdown()
	s.WaitForShutdown()
	add(t, pool, events+1, events+10)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan struct{})
	go func() { stream.Work(ctx); close(done) }()
	time.Sleep(300 * time.Millisecond)
	var n int
	fmt.Sscanf(port[len("127.0.0.1:"):], "%d", &n)
	s = startNATS(t, dir, n)
	defer s.Shutdown()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var left int
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM outbox WHERE position IS NULL OR position > (SELECT position FROM outbox_cursors)`).Scan(&left); err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d are not published", left)
		}
	}
	cancel()
	<-done
	check(events + 10)
}

// TestKafka: every event is in the topic, those of one object in one partition and in order.
func TestKafka(t *testing.T) {
	store, pool := newStore(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "paidonce.events"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	p, err := publish.NewKafka(cluster.ListenAddrs())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	const events = 1500
	add(t, pool, 1, events)
	if n, err := outbox.NewStream(store, p, quiet).RunOnce(t.Context()); err != nil || n != events {
		t.Fatalf("%d, %v", n, err)
	}
	reader, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics("paidonce.events"))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	partition, last, seen := map[string]int32{}, map[string]string{}, 0
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for seen < events {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%v after %d", err, seen)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			seen++
			object, id := string(r.Key), string(r.Headers[0].Value)
			if at, ok := partition[object]; ok && at != r.Partition || id <= last[object] {
				t.Errorf("%s of %s in partition %d after %s in %d", id, object, r.Partition, last[object], at)
			}
			partition[object], last[object] = r.Partition, id
		})
	}
	if seen != events || len(partition) != 10 {
		t.Errorf("%d records of %d objects", seen, len(partition))
	}
}

// refusing is a stream that does not acknowledge.
type refusing struct{ err error }

func (refusing) Name() string                                    { return "refusing" }
func (r refusing) Publish(context.Context, []outbox.Event) error { return r.err }

// TestNotAcknowledged: the cursor stays.
func TestNotAcknowledged(t *testing.T) {
	store, pool := newStore(t)
	add(t, pool, 1, 3)
	failed := errors.New("no")
	if _, err := outbox.NewStream(store, refusing{failed}, quiet).RunOnce(t.Context()); !errors.Is(err, failed) {
		t.Error(err)
	}
	if n, err := outbox.NewStream(store, refusing{}, quiet).RunOnce(t.Context()); err != nil || n != 3 {
		t.Errorf("got %d, %v, want 3", n, err)
	}
}
