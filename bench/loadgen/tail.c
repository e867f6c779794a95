/* tail: many consumers that wait for new records at the end of partitions, and one producer at a fixed rate.
 *
 * Bare sockets and epoll in one thread: a thousand clients of any library would cost more than the broker. A consumer
 * sends what Kafka's clients send: Fetch v16 with topic ids, max.wait 500 ms, min.bytes 1. With sessions=1 it has an
 * incremental session, as Kafka's own client, and names only partitions whose offset has moved; with sessions=0 it
 * names all of them each time, as librdkafka. Consumer i reads `width` partitions from i on. Every record is checked:
 * one that is lost or comes twice ends the run.
 *
 * topic= topic_id=(32 hex digits) pid=(of the broker) partitions=100 consumers=1000 width=1 rate=500 size=100 seconds=5
 * warm_seconds=1 sessions=1
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "frames.h"
#include "loadgen.h"

#define INPUT_SIZE 65536
#define FETCH_MOST 52428800
#define PARTITION_MOST 1048576
#define PATIENCE_SECONDS 10

typedef struct {
  int32_t partition;
  int64_t offset;
  int has_moved; /* since it was named in a request */
} place_t;

typedef struct {
  int socket;
  int32_t correlation, session_id, epoch;
  place_t *places;
  uint8_t *input;
  size_t filled;
} consumer_t;

static uint8_t topic_id[16];
static int width, has_sessions;
static int partition_count, rate;
static int64_t *produced;    /* records sent, by partition: also the offset of the next one */
static double **sent_at;     /* when, by partition and offset */
static int64_t room;         /* records that a partition gets at most */
static double measured_from; /* records sent before do not count */
static int64_t delivered, delivered_all, fetches;
static samples_t latencies;

static void put_varlen(frame_t *frame, uint32_t value) {
  for (; value >= 0x80; value >>= 7) put_number(frame, 1, (int64_t)((value & 0x7f) | 0x80));
  put_number(frame, 1, (int64_t)value);
}

static void send_fetch(consumer_t *consumer) {
  static frame_t frame;
  int is_first = !has_sessions || consumer->epoch == 0, named = 0;
  for (int i = 0; i < width && consumer->places != NULL; i++) named += is_first || consumer->places[i].has_moved;
  begin_request(&frame, 1, 16, ++consumer->correlation);
  put_number(&frame, 1, 0);   /* tags of the header */
  put_number(&frame, 4, 500); /* max.wait.ms */
  put_number(&frame, 4, 1);   /* min.bytes */
  put_number(&frame, 4, FETCH_MOST);
  put_number(&frame, 1, 0); /* read_uncommitted */
  put_number(&frame, 4, consumer->session_id);
  put_number(&frame, 4, has_sessions ? consumer->epoch : -1);
  put_varlen(&frame, named ? 2 : 1);
  if (named) {
    put_bytes(&frame, topic_id, 16);
    put_varlen(&frame, (uint32_t)named + 1);
    for (int i = 0; i < width; i++) {
      place_t *place = &consumer->places[i];
      if (!is_first && !place->has_moved) continue;
      place->has_moved = 0;
      put_number(&frame, 4, place->partition);
      put_number(&frame, 4, 0); /* leader epoch */
      put_number(&frame, 8, place->offset);
      put_number(&frame, 4, -1); /* last fetched epoch */
      put_number(&frame, 8, -1); /* log start, of followers */
      put_number(&frame, 4, PARTITION_MOST);
      put_number(&frame, 1, 0);
    }
    put_number(&frame, 1, 0);
  }
  put_varlen(&frame, 1); /* forgotten */
  put_varlen(&frame, 1); /* rack */
  put_number(&frame, 1, 0);
  end_request(&frame);
  if (send(consumer->socket, frame.bytes, frame.size, 0) != (ssize_t)frame.size) fail("a Fetch could not be sent");
  fetches++;
}

static uint32_t get_varlen(const uint8_t **at) {
  uint32_t value = 0;
  for (int shift = 0;; shift += 7) {
    uint8_t byte = *(*at)++;
    value |= (uint32_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return value;
  }
}

static void skip_tags(const uint8_t **at) {
  for (uint32_t count = get_varlen(at); count > 0; count--) {
    get_varlen(at);
    uint32_t size = get_varlen(at);
    *at += size;
  }
}

static place_t *place_of(consumer_t *consumer, int32_t partition) {
  for (int i = 0; i < width; i++)
    if (consumer->places[i].partition == partition) return &consumer->places[i];
  fail("a consumer got partition %d, which it does not read", partition);
}

static void take_batches(place_t *place, const uint8_t *bytes, int64_t size, double now) {
  for (int64_t position = 0; position < size;) {
    int64_t length = get_number(bytes + position + 8, 4) + 12, base = get_number(bytes + position, 8);
    if (position + length > size) fail("part of a batch was sent");
    if (base != place->offset)
      fail("partition %d: offset %lld came, %lld was due", place->partition, (long long)base, (long long)place->offset);
    if (base >= produced[place->partition]) fail("partition %d: a record that nobody sent", place->partition);
    double sent = sent_at[place->partition][base];
    if (sent >= measured_from) {
      add_sample(&latencies, now - sent);
      delivered++;
    }
    delivered_all++;
    place->offset = base + 1;
    place->has_moved = 1;
    position += length;
  }
}

static void take_answer(consumer_t *consumer, const uint8_t *answer, double now) {
  if (get_number(answer, 4) != consumer->correlation) fail("a Fetch got the answer of another");
  const uint8_t *at = answer + 4;
  skip_tags(&at);
  at += 4; /* throttle */
  if (get_number(at, 2) != 0) fail("Fetch got error %d", (int)get_number(at, 2));
  int32_t session_id = (int32_t)get_number(at + 2, 4);
  at += 6;
  if (has_sessions) {
    if (session_id == 0) fail("the broker gave no fetch session");
    consumer->session_id = session_id;
    consumer->epoch++;
  }
  for (uint32_t topics = get_varlen(&at) - 1; topics > 0; topics--) {
    at += 16;
    for (uint32_t partitions = get_varlen(&at) - 1; partitions > 0; partitions--) {
      int32_t partition = (int32_t)get_number(at, 4);
      if (get_number(at + 4, 2) != 0) fail("partition %d got error %d", partition, (int)get_number(at + 4, 2));
      at += 30;
      uint32_t aborted = get_varlen(&at);
      if (aborted > 1) fail("there are no transactions here");
      at += 4; /* preferred read replica */
      uint32_t size = get_varlen(&at);
      if (size > 1) {
        take_batches(place_of(consumer, partition), at, size - 1, now);
        at += size - 1;
      }
      skip_tags(&at);
    }
    skip_tags(&at);
  }
}

static void on_answer(consumer_t *consumer) {
  ssize_t count = recv(consumer->socket, consumer->input + consumer->filled, INPUT_SIZE - consumer->filled, 0);
  if (count <= 0) fail("the broker closed a consumer's connection");
  consumer->filled += (size_t)count;
  if (consumer->filled < 4) return;
  size_t size = (size_t)get_number(consumer->input, 4) + 4;
  if (size > INPUT_SIZE) fail("an answer of %zu bytes", size);
  if (consumer->filled < size) return;
  if (consumer->filled > size) fail("more than one answer to a Fetch");
  take_answer(consumer, consumer->input + 4, now_seconds());
  consumer->filled = 0;
  send_fetch(consumer);
}

/* The producer: one connection, which does not wait for answers. */

typedef struct {
  int socket;
  frame_t *requests; /* one for each partition */
  uint8_t input[INPUT_SIZE];
  size_t filled, error_position;
  int64_t sent, answered;
} producer_t;

static void produce_one(producer_t *producer) {
  int32_t partition = (int32_t)(producer->sent % partition_count);
  if (produced[partition] >= room) fail("more records than expected");
  frame_t *request = &producer->requests[partition];
  for (int i = 0; i < 4; i++) request->bytes[8 + i] = (uint8_t)((uint32_t)producer->sent >> (24 - 8 * i));
  sent_at[partition][produced[partition]++] = now_seconds();
  if (send(producer->socket, request->bytes, request->size, 0) != (ssize_t)request->size)
    fail("a Produce could not be sent");
  producer->sent++;
}

static void on_produced(producer_t *producer) {
  ssize_t count = recv(producer->socket, producer->input + producer->filled, INPUT_SIZE - producer->filled, 0);
  if (count <= 0) fail("the broker closed the producer's connection");
  producer->filled += (size_t)count;
  size_t position = 0;
  while (producer->filled - position >= 4) {
    size_t size = (size_t)get_number(producer->input + position, 4);
    if (producer->filled - position < size + 4) break;
    const uint8_t *answer = producer->input + position + 4;
    if (get_number(answer, 4) != (int32_t)producer->answered) fail("answers to Produce came out of order");
    if (get_number(answer + producer->error_position, 2) != 0) fail("a Produce was refused");
    producer->answered++;
    position += size + 4;
  }
  memmove(producer->input, producer->input + position, producer->filled - position);
  producer->filled -= position;
}

/* Brokers keep a limited number of sessions for two minutes: those of the next run need the room. */
static void close_sessions(const char *brokers, const consumer_t *consumers, int count) {
  consumer_t closer = {.socket = connect_broker(brokers)};
  uint8_t answer[256];
  for (int i = 0; i < count; i++) {
    closer.session_id = consumers[i].session_id, closer.epoch = -1;
    send_fetch(&closer);
    if (recv(closer.socket, answer, 4, MSG_WAITALL) != 4) fail("a session could not be closed");
    ssize_t size = (ssize_t)get_number(answer, 4);
    if (size > 256 || recv(closer.socket, answer, (size_t)size, MSG_WAITALL) != size) fail("no answer to a close");
  }
}

/* CPU seconds of the broker so far. */
double process_seconds(int64_t pid) {
  char path[64], text[2048];
  snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
  FILE *file = fopen(path, "r");
  if (file == NULL) fail("there is no process %lld", (long long)pid);
  size_t size = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[size] = '\0';
  const char *at = strrchr(text, ')');
  unsigned long long user = 0, kernel = 0;
  if (at == NULL ||
      sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &kernel) != 2)
    fail("%s cannot be read", path);
  return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

static void read_topic_id(const char *text) {
  if (strlen(text) != 32) fail("topic_id= has 32 hexadecimal digits");
  for (int i = 0; i < 16; i++) {
    unsigned byte;
    if (sscanf(text + 2 * i, "%2x", &byte) != 1) fail("topic_id= has 32 hexadecimal digits");
    topic_id[i] = (uint8_t)byte;
  }
}

static consumer_t *open_consumers(int poller, const char *brokers, int count) {
  consumer_t *consumers = calloc((size_t)count, sizeof *consumers);
  for (int i = 0; i < count; i++) {
    consumer_t *consumer = &consumers[i];
    consumer->socket = connect_broker(brokers);
    consumer->input = malloc(INPUT_SIZE);
    consumer->places = calloc((size_t)width, sizeof *consumer->places);
    for (int n = 0; n < width; n++) consumer->places[n].partition = (i + n) % partition_count;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = consumer};
    epoll_ctl(poller, EPOLL_CTL_ADD, consumer->socket, &event);
    send_fetch(consumer);
  }
  return consumers;
}

static producer_t *open_producer(int poller, const char *brokers, const char *topic, size_t size) {
  producer_t *producer = calloc(1, sizeof *producer);
  producer->socket = connect_broker(brokers);
  producer->error_position = produce_error_position(topic);
  producer->requests = calloc((size_t)partition_count, sizeof *producer->requests);
  for (int p = 0; p < partition_count; p++) build_produce(&producer->requests[p], topic, p, size);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = producer};
  epoll_ctl(poller, EPOLL_CTL_ADD, producer->socket, &event);
  return producer;
}

static int open_timer(int poller) {
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  struct itimerspec every = {.it_interval = {0, 1000000}, .it_value = {0, 1000000}};
  timerfd_settime(timer, 0, &every, NULL);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
  epoll_ctl(poller, EPOLL_CTL_ADD, timer, &event);
  return timer;
}

void run_tail(void) {
  const char *brokers = text_option("brokers", NULL), *topic = text_option("topic", NULL);
  int consumer_count = (int)number_option("consumers", 1000);
  double seconds = (double)number_option("seconds", 5), warm_seconds = (double)number_option("warm_seconds", 1);
  int64_t pid = number_option("pid", 0);
  read_topic_id(text_option("topic_id", NULL));
  width = (int)number_option("width", 1), has_sessions = (int)number_option("sessions", 1);
  partition_count = (int)number_option("partitions", 100), rate = (int)number_option("rate", 500);
  if (width > partition_count) fail("width= is at most partitions=");
  room = (int64_t)((seconds + warm_seconds + 1) * rate / partition_count) + 2;
  produced = calloc((size_t)partition_count, sizeof *produced);
  sent_at = calloc((size_t)partition_count, sizeof *sent_at);
  for (int p = 0; p < partition_count; p++) sent_at[p] = calloc((size_t)room, sizeof **sent_at);

  int poller = epoll_create1(0);
  consumer_t *consumers = open_consumers(poller, brokers, consumer_count);
  producer_t *producer = open_producer(poller, brokers, topic, (size_t)number_option("size", 100));
  int timer = open_timer(poller);
  int64_t readers = (int64_t)consumer_count * width / partition_count, wanted = 0;
  if (readers * partition_count != (int64_t)consumer_count * width) fail("not all partitions have as many readers");

  /* Two seconds after the start, the sessions are there and every consumer waits. */
  double start = now_seconds() + 2, end = start + warm_seconds + seconds, cpu = 0, cpu_end = 0, ended_at = 0;
  int64_t first_fetch = 0, last_fetch = 0;
  measured_from = start + warm_seconds;
  int is_measuring = 0;
  while (!ended_at || delivered_all < wanted) {
    struct epoll_event events[256];
    int count = epoll_wait(poller, events, 256, 1000);
    for (int i = 0; i < count; i++) {
      if (events[i].data.ptr == producer)
        on_produced(producer);
      else if (events[i].data.ptr != NULL)
        on_answer(events[i].data.ptr);
    }
    uint64_t ticks;
    if (read(timer, &ticks, sizeof ticks) < 0) continue;
    double now = now_seconds();
    if (!is_measuring && now >= measured_from) is_measuring = 1, cpu = process_seconds(pid), first_fetch = fetches;
    if (now < end)
      while ((double)producer->sent < (now - start) * rate) produce_one(producer);
    else if (!ended_at)
      ended_at = now, wanted = producer->sent * readers;
    if (ended_at && now > ended_at + PATIENCE_SECONDS)
      fail("%lld of %lld records were not delivered", (long long)(wanted - delivered_all), (long long)wanted);
  }
  cpu_end = process_seconds(pid), last_fetch = fetches;
  while (producer->answered < producer->sent) on_produced(producer);
  for (int i = 0; i < consumer_count; i++)
    for (int n = 0; n < width; n++)
      if (consumers[i].places[n].offset != produced[consumers[i].places[n].partition]) fail("a consumer lacks records");
  double elapsed = now_seconds() - measured_from;
  if (has_sessions) close_sessions(brokers, consumers, consumer_count);
  printf("{\"mode\": \"tail\", \"delivered\": %lld, \"fetches\": %lld, \"seconds\": %.6f, \"delivered_s\": %.1f, "
         "\"cpu_seconds\": %.3f, ",
         (long long)delivered, (long long)(last_fetch - first_fetch), elapsed, (double)delivered / elapsed,
         cpu_end - cpu);
  print_samples("delivery", &latencies);
  printf("}\n");
}
