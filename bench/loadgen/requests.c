/* requests: many connections, each with a few small Produce requests in flight, beside connections that do nothing.
 *
 * Bare sockets and epoll in one thread: a client library's batching would hide what a request costs the broker. Every
 * answer is checked for its correlation id and error code. Active connections spread over the partitions.
 *
 * topic= partitions=1 active=8 inflight=5 idle=0 size=100 seconds=3
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frames.h"
#include "loadgen.h"

#define INPUT_SIZE 65536
#define MAX_INFLIGHT 64

typedef struct {
  int socket;
  frame_t request;
  uint8_t input[INPUT_SIZE];
  size_t filled;
  int32_t next_correlation, next_answer;
  double sent_at[MAX_INFLIGHT];
} connection_t;

static size_t error_position;

static void send_all(int socket, const uint8_t *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t count = send(socket, bytes + done, size - done, 0);
    if (count <= 0) fail("the broker closed a connection while we sent");
    done += (size_t)count;
  }
}

static void send_request(connection_t *connection) {
  int32_t correlation = connection->next_correlation++;
  for (int i = 0; i < 4; i++) connection->request.bytes[8 + i] = (uint8_t)((uint32_t)correlation >> (24 - 8 * i));
  connection->sent_at[correlation % MAX_INFLIGHT] = now_seconds();
  send_all(connection->socket, connection->request.bytes, connection->request.size);
}

static void take_answer(connection_t *connection, const uint8_t *answer, samples_t *samples, double now) {
  int32_t expected = connection->next_answer++;
  if (get_number(answer, 4) != expected) fail("answers came out of order");
  if (get_number(answer + error_position, 2) != 0)
    fail("a Produce request got error %d", (int)get_number(answer + error_position, 2));
  add_sample(samples, now - connection->sent_at[expected % MAX_INFLIGHT]);
}

/* Read what is there, take whole answers, send as many requests again. */
static void on_readable(connection_t *connection, samples_t *samples, int sends_more) {
  ssize_t count = recv(connection->socket, connection->input + connection->filled, INPUT_SIZE - connection->filled, 0);
  if (count <= 0) fail("the broker closed an active connection");
  connection->filled += (size_t)count;
  size_t position = 0;
  int answered = 0;
  double now = now_seconds();
  while (connection->filled - position >= 4) {
    size_t size = (size_t)get_number(connection->input + position, 4);
    if (size > INPUT_SIZE - 4) fail("an answer of %zu bytes", size);
    if (connection->filled - position < size + 4) break;
    take_answer(connection, connection->input + position + 4, samples, now);
    position += size + 4, answered++;
  }
  memmove(connection->input, connection->input + position, connection->filled - position);
  connection->filled -= position;
  while (sends_more && answered-- > 0) send_request(connection);
}

static void greet(int socket) {
  uint8_t answer[INPUT_SIZE];
  frame_t frame = {0};
  begin_request(&frame, 18, 0, 1);
  end_request(&frame);
  send_all(socket, frame.bytes, frame.size);
  if (recv(socket, answer, 4, MSG_WAITALL) != 4) fail("no answer to ApiVersions");
  ssize_t size = (ssize_t)get_number(answer, 4);
  if (size > INPUT_SIZE || recv(socket, answer, (size_t)size, MSG_WAITALL) != size) fail("no answer to ApiVersions");
  free(frame.bytes);
}

static connection_t *open_active(int poller, const char *brokers, const char *topic, int32_t partition) {
  connection_t *connection = calloc(1, sizeof *connection);
  connection->socket = connect_broker(brokers);
  greet(connection->socket);
  build_produce(&connection->request, topic, partition, (size_t)number_option("size", 100));
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
  epoll_ctl(poller, EPOLL_CTL_ADD, connection->socket, &event);
  return connection;
}

static void check_idle(const int *idle, int count) {
  for (int i = 0; i < count; i++) {
    uint8_t byte;
    if (recv(idle[i], &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0) fail("the broker closed an idle connection");
  }
}

void run_requests(void) {
  const char *brokers = text_option("brokers", NULL), *topic = text_option("topic", NULL);
  int active_count = (int)number_option("active", 8), idle_count = (int)number_option("idle", 0);
  int inflight = (int)number_option("inflight", 5), partitions = (int)number_option("partitions", 1);
  double seconds = (double)number_option("seconds", 3);
  if (inflight > MAX_INFLIGHT) fail("inflight= is at most %d", MAX_INFLIGHT);
  error_position = produce_error_position(topic);
  int poller = epoll_create1(0);
  int *idle = calloc((size_t)idle_count + 1, sizeof *idle);
  double opening = now_seconds();
  for (int i = 0; i < idle_count; i++) greet(idle[i] = connect_broker(brokers));
  connection_t **active = calloc((size_t)active_count, sizeof *active);
  for (int i = 0; i < active_count; i++) active[i] = open_active(poller, brokers, topic, i % partitions);
  double opened = now_seconds() - opening;

  samples_t samples = {0};
  double start = now_seconds(), deadline = start + seconds;
  for (int i = 0; i < active_count; i++)
    for (int n = 0; n < inflight; n++) send_request(active[i]);
  int64_t in_flight = (int64_t)active_count * inflight;
  while (in_flight > 0) {
    struct epoll_event events[64];
    int count = epoll_wait(poller, events, 64, 5000);
    if (count == 0) fail("no answer for 5 s");
    int sends_more = now_seconds() < deadline && !stop_asked;
    for (int i = 0; i < count; i++) {
      size_t before = samples.count;
      on_readable(events[i].data.ptr, &samples, sends_more);
      if (!sends_more) in_flight -= (int64_t)(samples.count - before);
    }
  }
  check_idle(idle, idle_count);
  double elapsed = now_seconds() - start;
  printf("{\"mode\": \"requests\", \"requests\": %zu, \"seconds\": %.6f, \"requests_s\": %.1f, \"connections\": %d, "
         "\"connect_seconds\": %.4f, ",
         samples.count, elapsed, (double)samples.count / elapsed, active_count + idle_count, opened);
  print_samples("answer", &samples);
  printf("}\n");
}
