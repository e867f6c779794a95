/* consume: read all partitions from the beginning with librdkafka's simple consumer (no group, nothing committed).
 *
 * The first half second of a consumer is its own start-up, so the clock starts with the first batch of records, which
 * is not counted, and stops with the last. With loop=1 it starts again at each end, until `seconds` or SIGTERM. With
 * limit=N it takes no more than N MB a second: the same load for brokers of different speed.
 *
 * topic= partitions= records= (expected; fewer is a failure) loop=0 seconds=0 limit=0
 */
#include <stdio.h>
#include <stdlib.h>

#include "loadgen.h"

#define BATCH 5000
#define LIMITED_BATCH 500

static int64_t counted_bytes, counted_records, seen_records;

/* Counts one batch of messages; returns how many of them were records. A partition's end restarts it when looping. */
static int64_t take(rd_kafka_message_t **messages, ssize_t count, int loops, int is_first) {
  int64_t records = 0, bytes = 0;
  for (ssize_t i = 0; i < count; i++) {
    rd_kafka_message_t *message = messages[i];
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      records++;
      bytes += (int64_t)message->len;
    } else if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF && loops) {
      rd_kafka_seek(message->rkt, message->partition, RD_KAFKA_OFFSET_BEGINNING, 0);
    } else if (message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      fail("consume: %s", rd_kafka_err2str(message->err));
    }
    rd_kafka_message_destroy(message);
  }
  seen_records += records;
  if (!is_first) counted_records += records, counted_bytes += bytes;
  return records;
}

void run_consume(void) {
  int32_t partitions = (int32_t)number_option("partitions", 1);
  int loops = (int)number_option("loop", 0);
  int64_t expected = loops ? INT64_MAX : number_option("records", 0);
  double seconds = (double)number_option("seconds", 0), limit = (double)number_option("limit", 0) * 1e6;
  size_t most = limit > 0 ? LIMITED_BATCH : BATCH;
  rd_kafka_conf_t *conf = new_client_settings();
  if (loops) set_client(conf, "enable.partition.eof", "true");
  rd_kafka_t *client = new_client(RD_KAFKA_CONSUMER, conf);
  rd_kafka_topic_t *topic = new_topic(client, text_option("topic", NULL));
  rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
  rd_kafka_message_t **messages = malloc(BATCH * sizeof *messages);
  for (int32_t p = 0; p < partitions; p++)
    if (rd_kafka_consume_start_queue(topic, p, RD_KAFKA_OFFSET_BEGINNING, queue) != 0)
      fail("partition %d: %s", p, rd_kafka_err2str(rd_kafka_last_error()));

  double asked = now_seconds(), first = 0, last = 0, patience = asked + 60;
  while (seen_records < expected && !stop_asked) {
    ssize_t count = rd_kafka_consume_batch_queue(queue, 100, messages, most);
    if (count < 0) fail("consume: %s", rd_kafka_err2str(rd_kafka_last_error()));
    double now = now_seconds();
    if (take(messages, count, loops, first == 0) > 0) {
      if (first == 0) first = now;
      last = now, patience = now + 30;
    }
    if (now > patience) fail("only %lld of %lld records came", (long long)seen_records, (long long)expected);
    if (seconds > 0 && now > asked + seconds) break;
    if (limit > 0 && first > 0) sleep_until(first + (double)counted_bytes / limit);
  }
  double elapsed = last > first ? last - first : 1e-9;
  printf("{\"mode\": \"consume\", \"records\": %lld, \"bytes\": %lld, \"seconds\": %.6f, \"records_s\": %.1f, "
         "\"mb_s\": %.3f, \"startup_seconds\": %.4f}\n",
         (long long)seen_records, (long long)counted_bytes, elapsed, (double)counted_records / elapsed,
         (double)counted_bytes / elapsed / 1e6, first - asked);
  /* The process ends here: stopping sixteen partitions politely takes longer than the measurement. */
}
