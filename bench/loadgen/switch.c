/* switch: producers at a fixed rate on every partition, and when each record was sent and acknowledged.
 *
 * The schedule is kept whatever the broker does, so that a pause shows in every record that it delayed. librdkafka has
 * five requests of an idempotent producer on their way, each with one partition: with many partitions it would be the
 * bottleneck itself, so that several producers share them. Every record is written to `file` as it was seen: its
 * partition (int64) and two times of the monotonic clock (double), sent and acknowledged. SIGTERM ends it.
 *
 * topic= partitions= producers=1 rate= (records a second, over all partitions) seconds= size=1024 idempotence=1 file=
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "loadgen.h"

typedef struct {
  int64_t partition;
  double sent_at, acked_at;
} record_t;

static record_t *records;
static volatile int64_t delivered;
static volatile int is_over;

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
  (void)client, (void)opaque;
  if (message->err) fail("a record was not delivered: %s", rd_kafka_err2str(message->err));
  records[(intptr_t)message->_private].acked_at = now_seconds();
  __atomic_add_fetch(&delivered, 1, __ATOMIC_RELAXED);
}

static void *report(void *client) {
  while (!is_over) rd_kafka_poll(client, 100);
  return NULL;
}

static void wait_delivered(int64_t count) {
  double deadline = now_seconds() + 60;
  while (delivered < count) {
    sleep_until(now_seconds() + 0.01);
    if (now_seconds() > deadline) fail("%lld of %lld records acknowledged", (long long)delivered, (long long)count);
  }
}

static void write_records(int64_t count) {
  FILE *file = fopen(text_option("file", NULL), "wb");
  if (file == NULL || fwrite(records, sizeof *records, (size_t)count, file) != (size_t)count || fclose(file) != 0)
    fail("the records cannot be written to %s", text_option("file", NULL));
}

void run_switch(void) {
  int64_t partitions = number_option("partitions", 1), producers = number_option("producers", 1);
  double rate = (double)number_option("rate", 1000);
  int64_t total = (int64_t)(rate * (double)number_option("seconds", 10)) + partitions, sent = 0;
  size_t size = (size_t)number_option("size", 1024);
  uint8_t *payload = new_payload(size, 0);
  records = calloc((size_t)total, sizeof *records);
  rd_kafka_topic_t **topics = calloc((size_t)producers, sizeof(rd_kafka_topic_t *));
  pthread_t *reporters = calloc((size_t)producers, sizeof(pthread_t));
  for (int64_t i = 0; i < producers; i++) {
    rd_kafka_conf_t *conf = new_client_settings();
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    set_client(conf, "enable.idempotence", number_option("idempotence", 1) ? "true" : "false");
    rd_kafka_t *client = new_client(RD_KAFKA_PRODUCER, conf);
    topics[i] = new_topic(client, text_option("topic", NULL));
    pthread_create(&reporters[i], NULL, report, client);
  }

  double start = now_seconds();
  for (; sent < total && !stop_asked; sent++) {
    /* The first record of each partition connects its producer, and is waited for. */
    if (sent == partitions) wait_delivered(sent), start = now_seconds();
    if (sent >= partitions) sleep_until(start + (double)(sent - partitions) / rate);
    records[sent].partition = sent % partitions;
    records[sent].sent_at = now_seconds();
    rd_kafka_topic_t *topic = topics[sent % partitions % producers];
    if (rd_kafka_produce(topic, (int32_t)(sent % partitions), 0x2, payload, size, NULL, 0, (void *)(intptr_t)sent) != 0)
      fail("produce: %s", rd_kafka_err2str(rd_kafka_last_error()));
  }
  wait_delivered(sent);
  is_over = 1;
  for (int64_t i = 0; i < producers; i++) pthread_join(reporters[i], NULL);
  write_records(sent);
  printf("{\"mode\": \"switch\", \"records\": %lld, \"bytes\": %lld, \"seconds\": %.6f}\n", (long long)sent,
         (long long)sent * (long long)size, now_seconds() - start);
}
