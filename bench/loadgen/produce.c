/* produce: one producer with librdkafka's own batching, as many records as asked (or until `seconds` or SIGTERM).
 *
 * The clock starts after a first record was acknowledged, so that connecting is not part of the figure, and stops at
 * the last delivery report. One failed delivery fails the run.
 *
 * topic= records= size= codec=none acks=all idempotence=0 compressible=0 seconds=0
 */
#include <stdio.h>
#include <string.h>

#include "loadgen.h"

#define PAYLOAD_POOL (8u << 20)

static int64_t delivered;
static double last_delivery;

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
  (void)client, (void)opaque;
  if (message->err) fail("a record was not delivered: %s", rd_kafka_err2str(message->err));
  delivered++;
}

static void send_one(rd_kafka_t *client, rd_kafka_topic_t *topic, uint8_t *payload, size_t size) {
  while (rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, 0, payload, size, NULL, 0, NULL) != 0) {
    if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
      fail("produce: %s", rd_kafka_err2str(rd_kafka_last_error()));
    rd_kafka_poll(client, 1);
  }
}

static void wait_delivered(rd_kafka_t *client, int64_t count, double patience) {
  double deadline = now_seconds() + patience;
  while (delivered < count) {
    rd_kafka_poll(client, 100);
    if (now_seconds() > deadline) fail("%lld of %lld records delivered", (long long)delivered, (long long)count);
  }
  last_delivery = now_seconds();
}

void run_produce(void) {
  int64_t records = number_option("records", INT64_MAX);
  size_t size = (size_t)number_option("size", 1024);
  double seconds = (double)number_option("seconds", 0);
  rd_kafka_conf_t *conf = new_client_settings();
  rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  set_client(conf, "acks", text_option("acks", "all"));
  set_client(conf, "compression.codec", text_option("codec", "none"));
  set_client(conf, "enable.idempotence", number_option("idempotence", 0) ? "true" : "false");
  rd_kafka_t *client = new_client(RD_KAFKA_PRODUCER, conf);
  rd_kafka_topic_t *topic = new_topic(client, text_option("topic", NULL));
  uint8_t *payload = new_payload(PAYLOAD_POOL + size, (int)number_option("compressible", 0));

  send_one(client, topic, payload, size);
  wait_delivered(client, 1, 60);
  double start = now_seconds(), deadline = seconds > 0 ? start + seconds : 1e300;
  int64_t sent = 0;
  while (sent < records && !stop_asked) {
    /* Each record begins elsewhere in the pool: a codec must not find the same record twice in a batch. */
    send_one(client, topic, payload + (size_t)(sent * 1031) % PAYLOAD_POOL, size);
    if (++sent % 500 == 0) {
      rd_kafka_poll(client, 0);
      if (now_seconds() > deadline) break;
    }
  }
  wait_delivered(client, sent + 1, 120);
  double elapsed = last_delivery - start;
  printf("{\"mode\": \"produce\", \"records\": %lld, \"bytes\": %lld, \"seconds\": %.6f, \"records_s\": %.1f, "
         "\"mb_s\": %.3f}\n",
         (long long)sent, (long long)sent * (long long)size, elapsed, (double)sent / elapsed,
         (double)sent * (double)size / elapsed / 1e6);
  rd_kafka_topic_destroy(topic);
  rd_kafka_destroy(client);
}
