/* latency: produce at a fixed rate and consume in the same process; the time from produce() to the consumer.
 *
 * The producer does not wait for company (linger.ms=0), the consumer uses its defaults (fetch.min.bytes=1). The schedule
 * is kept even when the broker is slow, so that a stall shows in every record it delayed. Partition 0 of the topic.
 * SIGTERM ends it early: what was sent until then counts.
 *
 * topic= rate=1000 seconds=10 warmup=1 size=100
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen.h"

static double *sent_at, *acked_at, *received_at;
static volatile int64_t total;
static volatile int64_t received_count, delivered_count;
static volatile int probe_received;

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
  (void)client, (void)opaque;
  if (message->err) fail("a record was not delivered: %s", rd_kafka_err2str(message->err));
  intptr_t index = (intptr_t)message->_private - 1;
  if (index < 0) return;
  acked_at[index] = now_seconds();
  delivered_count++;
}

static void *receive(void *opaque) {
  rd_kafka_queue_t *queue = opaque;
  rd_kafka_message_t *messages[64];
  while (received_count < total) {
    ssize_t count = rd_kafka_consume_batch_queue(queue, 100, messages, 1);
    double now = now_seconds();
    for (ssize_t i = 0; i < count; i++) {
      if (messages[i]->err) fail("consume: %s", rd_kafka_err2str(messages[i]->err));
      int64_t index;
      memcpy(&index, messages[i]->payload, sizeof index);
      if (index < 0) {
        probe_received = 1;
      } else {
        received_at[index] = now;
        received_count++;
      }
      rd_kafka_message_destroy(messages[i]);
    }
  }
  return NULL;
}

static void *report(void *opaque) {
  while (delivered_count < total) rd_kafka_poll(opaque, 100);
  return NULL;
}

static void send_record(rd_kafka_topic_t *topic, uint8_t *payload, size_t size, int64_t index) {
  const int copy = 0x2;
  memcpy(payload, &index, sizeof index);
  if (index >= 0) sent_at[index] = now_seconds();
  if (rd_kafka_produce(topic, 0, copy, payload, size, NULL, 0, (void *)(intptr_t)(index + 1)) != 0)
    fail("produce: %s", rd_kafka_err2str(rd_kafka_last_error()));
}

static void wait_for(volatile int64_t *counter, const char *what) {
  double deadline = now_seconds() + 30;
  while (*counter < total) {
    sleep_until(now_seconds() + 0.01);
    if (now_seconds() > deadline) fail("%lld of %lld records %s", (long long)*counter, (long long)total, what);
  }
}

void run_latency(void) {
  double rate = (double)number_option("rate", 1000);
  int64_t skipped = (int64_t)(rate * (double)number_option("warmup", 1));
  total = skipped + (int64_t)(rate * (double)number_option("seconds", 10));
  size_t size = (size_t)number_option("size", 100);
  uint8_t *payload = new_payload(size < 8 ? 8 : size, 0);
  sent_at = calloc((size_t)total, sizeof(double));
  acked_at = calloc((size_t)total, sizeof(double));
  received_at = calloc((size_t)total, sizeof(double));

  const char *name = text_option("topic", NULL);
  rd_kafka_t *consumer = new_client(RD_KAFKA_CONSUMER, new_client_settings());
  rd_kafka_topic_t *consumed = new_topic(consumer, name);
  rd_kafka_queue_t *queue = rd_kafka_queue_new(consumer);
  if (rd_kafka_consume_start_queue(consumed, 0, RD_KAFKA_OFFSET_END, queue) != 0)
    fail("consume: %s", rd_kafka_err2str(rd_kafka_last_error()));

  rd_kafka_conf_t *conf = new_client_settings();
  rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  set_client(conf, "acks", text_option("acks", "all"));
  set_client(conf, "linger.ms", "0");
  rd_kafka_t *producer = new_client(RD_KAFKA_PRODUCER, conf);
  rd_kafka_topic_t *produced = new_topic(producer, name);

  pthread_t receiver, reporter;
  pthread_create(&receiver, NULL, receive, queue);
  pthread_create(&reporter, NULL, report, producer);
  double deadline = now_seconds() + 30;
  while (!probe_received) {
    send_record(produced, payload, size, -1);
    sleep_until(now_seconds() + 0.05);
    if (now_seconds() > deadline) fail("the consumer saw nothing for 30 s");
  }
  sleep_until(now_seconds() + 0.3);
  double start = now_seconds();
  int64_t sent = 0;
  for (; sent < total && !stop_asked; sent++) {
    sleep_until(start + (double)sent / rate);
    send_record(produced, payload, size, sent);
  }
  total = sent;
  wait_for(&received_count, "received");
  wait_for(&delivered_count, "acknowledged");
  pthread_join(receiver, NULL);
  pthread_join(reporter, NULL);

  samples_t end_to_end = {0}, acknowledged = {0};
  for (int64_t i = skipped; i < total; i++) {
    add_sample(&end_to_end, received_at[i] - sent_at[i]);
    add_sample(&acknowledged, acked_at[i] - sent_at[i]);
  }
  printf("{\"mode\": \"latency\", \"rate\": %.0f, ", rate);
  print_samples("end_to_end", &end_to_end);
  printf(", ");
  print_samples("acknowledged", &acknowledged);
  printf("}\n");
}
