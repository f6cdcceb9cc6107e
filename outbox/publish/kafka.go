package publish

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"paidonce/outbox"
)

const (
	// kafkaTopic is the topic of all events.
	kafkaTopic = "paidonce.events"
	// kafkaDelivery is how long the client tries to send a record. It is shorter than the time
	// limit of a batch, so that nothing of a batch is still under way when it is tried again.
	kafkaDelivery = 20 * time.Second
)

// Kafka publishes to Kafka with an idempotent producer, so that its own retries neither double nor
// reorder what is in a partition. Safe for concurrent use.
type Kafka struct {
	client *kgo.Client
}

var _ outbox.Publisher = (*Kafka)(nil)

// NewKafka returns a publisher to the cluster of the brokers. It connects when there is something
// to publish. It returns an error for addresses that cannot be parsed.
func NewKafka(brokers []string) (*Kafka, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(brokers...), kgo.ClientID("paidonce"), kgo.DefaultProduceTopic(kafkaTopic),
		kgo.AllowAutoTopicCreation(),
		kgo.RequiredAcks(kgo.AllISRAcks()), // the producer is idempotent by default
		kgo.RecordDeliveryTimeout(kafkaDelivery),
		// As Java's client does: the events of one object are in one partition, in order.
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
	)
	if err != nil {
		return nil, fmt.Errorf("PAIDONCE_KAFKA_BROKERS: %w", err)
	}
	return &Kafka{client: client}, nil
}

// Name implements [outbox.Publisher].
func (k *Kafka) Name() string { return "kafka" }

// Close closes the connections.
func (k *Kafka) Close() { k.client.Close() }

// Publish implements [outbox.Publisher]. Records are keyed by object, and acknowledged by all
// replicas that are in sync.
func (k *Kafka) Publish(ctx context.Context, events []outbox.Event) error {
	records := make([]*kgo.Record, 0, len(events))
	for _, e := range events {
		records = append(records, &kgo.Record{Key: []byte(e.ObjectID), Value: e.Payload, Headers: []kgo.RecordHeader{
			{Key: "event-id", Value: []byte(e.ID)}, {Key: "event-type", Value: []byte(e.Type)},
			{Key: "account", Value: []byte(e.AccountID)},
		}})
	}
	return k.client.ProduceSync(ctx, records...).FirstErr()
}
