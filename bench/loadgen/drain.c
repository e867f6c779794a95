/* drain: fetch all partitions over one bare socket and throw the records away, looking only at batch headers.
 *
 * Consuming is limited by the client library, which makes an object of each record; this shows what the broker could
 * give. Same request sizes as librdkafka's defaults, one request in flight.
 *
 * topic= partitions=1 records= (stops when that many have come) loops=1
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frames.h"
#include "loadgen.h"

#define RESPONSE_MOST (64u << 20)
#define FETCH_MOST 52428800
#define PARTITION_MOST 1048576

static int64_t offsets[1024];
static int64_t records_seen, bytes_seen;

static void build_fetch(frame_t *frame, const char *topic, int partitions) {
  begin_request(frame, 1, 11, 7);
  put_number(frame, 4, -1);
  put_number(frame, 4, 500);
  put_number(frame, 4, 1);
  put_number(frame, 4, FETCH_MOST);
  put_number(frame, 1, 0);
  put_number(frame, 4, 0);
  put_number(frame, 4, -1);
  put_number(frame, 4, 1);
  put_text(frame, topic);
  put_number(frame, 4, partitions);
  for (int p = 0; p < partitions; p++) {
    put_number(frame, 4, p);
    put_number(frame, 4, -1);
    put_number(frame, 8, offsets[p]);
    put_number(frame, 8, -1);
    put_number(frame, 4, PARTITION_MOST);
  }
  put_number(frame, 4, 0);
  put_text(frame, "");
  end_request(frame);
}

static void walk_batches(const uint8_t *bytes, int64_t size, int32_t partition) {
  for (int64_t position = 0; position + 61 <= size;) {
    int64_t length = get_number(bytes + position + 8, 4) + 12;
    if (position + length > size) break;
    int64_t base = get_number(bytes + position, 8), last = base + get_number(bytes + position + 23, 4);
    if (last >= offsets[partition]) {
      records_seen += last + 1 - (base > offsets[partition] ? base : offsets[partition]);
      offsets[partition] = last + 1;
    }
    position += length;
  }
}

static void walk_answer(const uint8_t *answer) {
  if (get_number(answer + 8, 2) != 0) fail("Fetch got error %d", (int)get_number(answer + 8, 2));
  const uint8_t *at = answer + 14;
  int64_t topics = get_number(at, 4);
  at += 4;
  for (int64_t t = 0; t < topics; t++) {
    at += 2 + get_number(at, 2);
    int64_t partitions = get_number(at, 4);
    at += 4;
    for (int64_t p = 0; p < partitions; p++) {
      int32_t index = (int32_t)get_number(at, 4);
      if (get_number(at + 4, 2) != 0) fail("partition %d got error %d", index, (int)get_number(at + 4, 2));
      at += 30;
      int64_t aborted = get_number(at, 4);
      at += 4 + (aborted > 0 ? aborted * 16 : 0) + 4;
      int64_t size = get_number(at, 4);
      at += 4;
      if (size <= 0) continue;
      walk_batches(at, size, index);
      bytes_seen += size;
      at += size;
    }
  }
}

static void receive_all(int socket, uint8_t *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t count = recv(socket, bytes + done, size - done, 0);
    if (count <= 0) fail("the broker closed the connection");
    done += (size_t)count;
  }
}

void run_drain(void) {
  const char *topic = text_option("topic", NULL);
  int partitions = (int)number_option("partitions", 1);
  int64_t expected = number_option("records", 1);
  int64_t loops = number_option("loops", 1);
  if (partitions > 1024) fail("partitions= is at most 1024");
  int socket = connect_broker(text_option("brokers", NULL));
  uint8_t *answer = malloc(RESPONSE_MOST);
  memset(answer, 0, RESPONSE_MOST);
  frame_t frame = {0};
  double start = now_seconds(), patience = start + 60;
  while (loops-- > 0) {
    memset(offsets, 0, sizeof offsets);
    for (records_seen = 0; records_seen < expected;) {
      build_fetch(&frame, topic, partitions);
      if (send(socket, frame.bytes, frame.size, 0) != (ssize_t)frame.size) fail("cannot send");
      receive_all(socket, answer, 4);
      int64_t size = get_number(answer, 4);
      if (size < 14 || size > RESPONSE_MOST) fail("an answer of %lld bytes", (long long)size);
      receive_all(socket, answer, (size_t)size);
      walk_answer(answer);
      if (now_seconds() > patience) fail("only %lld of %lld records came", (long long)records_seen, (long long)expected);
    }
  }
  double elapsed = now_seconds() - start;
  printf("{\"mode\": \"drain\", \"bytes\": %lld, \"seconds\": %.6f, \"mb_s\": %.3f}\n", (long long)bytes_seen, elapsed,
         (double)bytes_seen / elapsed / 1e6);
}
