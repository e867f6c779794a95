#include "frames.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "loadgen.h"

void put_bytes(frame_t *frame, const void *bytes, size_t size) {
  if (frame->size + size > frame->capacity) {
    frame->capacity = (frame->size + size) * 2;
    frame->bytes = realloc(frame->bytes, frame->capacity);
    if (frame->bytes == NULL) fail("no memory for a frame");
  }
  memcpy(frame->bytes + frame->size, bytes, size);
  frame->size += size;
}

static void store_number(uint8_t *bytes, int width, int64_t value) {
  for (int i = 0; i < width; i++) bytes[i] = (uint8_t)((uint64_t)value >> (8 * (width - 1 - i)));
}

void put_number(frame_t *frame, int width, int64_t value) {
  uint8_t bytes[8];
  store_number(bytes, width, value);
  put_bytes(frame, bytes, (size_t)width);
}

void put_text(frame_t *frame, const char *text) {
  put_number(frame, 2, (int64_t)strlen(text));
  put_bytes(frame, text, strlen(text));
}

static void put_varint(frame_t *frame, int64_t value) {
  uint64_t rest = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
  for (; rest >= 0x80; rest >>= 7) put_number(frame, 1, (int64_t)((rest & 0x7f) | 0x80));
  put_number(frame, 1, (int64_t)rest);
}

void begin_request(frame_t *frame, int api_key, int version, int32_t correlation) {
  frame->size = 0;
  put_number(frame, 4, 0);
  put_number(frame, 2, api_key);
  put_number(frame, 2, version);
  put_number(frame, 4, correlation);
  put_text(frame, "loadgen");
}

void end_request(frame_t *frame) { store_number(frame->bytes, 4, (int64_t)frame->size - 4); }

int64_t get_number(const uint8_t *bytes, int width) {
  int64_t value = (int8_t)bytes[0];
  for (int i = 1; i < width; i++) value = (int64_t)((uint64_t)value << 8) | bytes[i];
  return value;
}

/* CRC-32C, bit by bit: it runs once per template, not once per request. */
static uint32_t crc32c(const uint8_t *bytes, size_t size) {
  uint32_t crc = 0xffffffffu;
  for (size_t i = 0; i < size; i++) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (0x82f63b78u & (0u - (crc & 1)));
  }
  return ~crc;
}

static void build_batch(frame_t *batch, size_t size) {
  frame_t record = {0};
  uint8_t *value = new_payload(size, 0);
  put_number(&record, 1, 0);
  put_varint(&record, 0);
  put_varint(&record, 0);
  put_varint(&record, -1);
  put_varint(&record, (int64_t)size);
  put_bytes(&record, value, size);
  put_varint(&record, 0);

  int64_t timestamp = (int64_t)time(NULL) * 1000;
  put_number(batch, 8, 0);   /* base offset */
  put_number(batch, 4, 0);   /* length, filled in below */
  put_number(batch, 4, -1);  /* leader epoch */
  put_number(batch, 1, 2);   /* magic */
  put_number(batch, 4, 0);   /* CRC, filled in below */
  put_number(batch, 2, 0);   /* attributes */
  put_number(batch, 4, 0);   /* last offset delta */
  put_number(batch, 8, timestamp);
  put_number(batch, 8, timestamp);
  put_number(batch, 8, -1);  /* producer id */
  put_number(batch, 2, -1);  /* producer epoch */
  put_number(batch, 4, -1);  /* base sequence */
  put_number(batch, 4, 1);   /* records */
  put_varint(batch, (int64_t)record.size);
  put_bytes(batch, record.bytes, record.size);
  store_number(batch->bytes + 8, 4, (int64_t)batch->size - 12);
  store_number(batch->bytes + 17, 4, crc32c(batch->bytes + 21, batch->size - 21));
  free(record.bytes);
  free(value);
}

void build_produce(frame_t *frame, const char *topic, int32_t partition, size_t size) {
  frame_t batch = {0};
  build_batch(&batch, size);
  begin_request(frame, 0, 7, 0);
  put_number(frame, 2, -1);    /* transactional id */
  put_number(frame, 2, -1);    /* acks */
  put_number(frame, 4, 30000); /* timeout */
  put_number(frame, 4, 1);
  put_text(frame, topic);
  put_number(frame, 4, 1);
  put_number(frame, 4, partition);
  put_number(frame, 4, (int64_t)batch.size);
  put_bytes(frame, batch.bytes, batch.size);
  end_request(frame);
  free(batch.bytes);
}

size_t produce_error_position(const char *topic) { return 4 + 4 + 2 + strlen(topic) + 4 + 4; }

int connect_broker(const char *brokers) {
  char host[64];
  const char *colon = strrchr(brokers, ':');
  if (colon == NULL || (size_t)(colon - brokers) >= sizeof host) fail("brokers= must be ADDRESS:PORT");
  memcpy(host, brokers, (size_t)(colon - brokers));
  host[colon - brokers] = '\0';
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1))};
  if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail("%s is no IPv4 address", host);
  int connection = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0) fail("cannot connect to %s", brokers);
  return connection;
}
