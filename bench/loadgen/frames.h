/* Kafka requests built by hand, for the modes that use bare sockets. */
#ifndef STRANDLINE_BENCH_FRAMES_H
#define STRANDLINE_BENCH_FRAMES_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint8_t *bytes;
  size_t size, capacity;
} frame_t;

void put_number(frame_t *frame, int width, int64_t value);
void put_text(frame_t *frame, const char *text);
void put_bytes(frame_t *frame, const void *bytes, size_t size);
/* Begin a frame (length still open) with a request header; end it by filling in the length. */
void begin_request(frame_t *frame, int api_key, int version, int32_t correlation);
void end_request(frame_t *frame);

/* A Produce v7 request, acks=all, with one record of `size` bytes for one partition. */
void build_produce(frame_t *frame, const char *topic, int32_t partition, size_t size);
/* Where a Produce v7 answer for one partition of `topic` holds its error code, counted from the correlation id. */
size_t produce_error_position(const char *topic);

int64_t get_number(const uint8_t *bytes, int width);

/* A connected TCP_NODELAY socket to the first of brokers=, blocking. */
int connect_broker(const char *brokers);

#endif
