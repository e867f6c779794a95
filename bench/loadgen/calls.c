/* calls: the same small request over and over on each of many connections, one in flight; every answer is compared.
 *
 * Requests and the answers that are due come from a file, one line for each connection: both frames in hexadecimal,
 * without their lengths. Only the correlation id changes.
 *
 * frames=FILE pid=(of the broker) seconds=3 warm_seconds=1
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "frames.h"
#include "loadgen.h"

#define FRAME_MOST 8192

typedef struct {
  int socket;
  frame_t request;
  uint8_t due[FRAME_MOST], input[FRAME_MOST];
  size_t due_size, filled;
  int32_t correlation;
  double sent_at;
} caller_t;

static size_t read_hex(const char *text, uint8_t *bytes) {
  size_t size = strlen(text) / 2;
  if (size > FRAME_MOST - 4) fail("a frame of %zu bytes", size);
  for (size_t i = 0; i < size; i++) {
    unsigned byte;
    if (sscanf(text + 2 * i, "%2x", &byte) != 1) fail("frames= has lines of two hexadecimal numbers");
    bytes[i] = (uint8_t)byte;
  }
  return size;
}

static void call(caller_t *caller) {
  caller->correlation++;
  for (int i = 0; i < 4; i++) caller->request.bytes[8 + i] = (uint8_t)((uint32_t)caller->correlation >> (24 - 8 * i));
  caller->sent_at = now_seconds();
  if (send(caller->socket, caller->request.bytes, caller->request.size, 0) != (ssize_t)caller->request.size)
    fail("a request could not be sent");
}

/* Returns whether the answer has come. */
static int on_answer(caller_t *caller, samples_t *samples) {
  ssize_t count = recv(caller->socket, caller->input + caller->filled, FRAME_MOST - caller->filled, 0);
  if (count <= 0) fail("the broker closed a connection");
  caller->filled += (size_t)count;
  if (caller->filled < caller->due_size + 4) return 0;
  if (caller->filled != caller->due_size + 4 || get_number(caller->input, 4) != (int64_t)caller->due_size)
    fail("an answer has not the size that is due");
  if (get_number(caller->input + 4, 4) != caller->correlation) fail("a request got the answer of another");
  if (memcmp(caller->input + 8, caller->due + 4, caller->due_size - 4) != 0) fail("an answer is not what is due");
  caller->filled = 0;
  if (samples != NULL) add_sample(samples, now_seconds() - caller->sent_at);
  return 1;
}

static int open_callers(int poller, const char *brokers, const char *path) {
  static char request[2 * FRAME_MOST + 1], due[2 * FRAME_MOST + 1];
  static uint8_t bytes[FRAME_MOST];
  FILE *file = fopen(path, "r");
  if (file == NULL) fail("%s cannot be read", path);
  int count = 0;
  for (; fscanf(file, "%16384s %16384s", request, due) == 2; count++) {
    caller_t *caller = calloc(1, sizeof *caller);
    size_t size = read_hex(request, bytes);
    put_number(&caller->request, 4, (int64_t)size);
    put_bytes(&caller->request, bytes, size);
    caller->due_size = read_hex(due, caller->due);
    caller->socket = connect_broker(brokers);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = caller};
    epoll_ctl(poller, EPOLL_CTL_ADD, caller->socket, &event);
    call(caller);
  }
  fclose(file);
  return count;
}

void run_calls(void) {
  int64_t pid = number_option("pid", 0);
  double seconds = (double)number_option("seconds", 3), warm_seconds = (double)number_option("warm_seconds", 1);
  int poller = epoll_create1(0);
  int in_flight = open_callers(poller, text_option("brokers", NULL), text_option("frames", NULL));
  if (in_flight == 0) fail("frames= has no line");
  samples_t samples = {0};
  double start = now_seconds() + warm_seconds, end = start + seconds, cpu = 0, now = 0;
  int is_measuring = 0;
  while (in_flight > 0) {
    struct epoll_event events[64];
    int count = epoll_wait(poller, events, 64, 5000);
    if (count == 0) fail("no answer for 5 s");
    now = now_seconds();
    if (!is_measuring && now >= start) is_measuring = 1, start = now, cpu = process_seconds(pid);
    for (int i = 0; i < count; i++) {
      if (!on_answer(events[i].data.ptr, is_measuring ? &samples : NULL)) continue;
      if (now < end && !stop_asked)
        call(events[i].data.ptr);
      else
        in_flight--;
    }
  }
  double elapsed = now - start;
  printf("{\"mode\": \"calls\", \"requests\": %zu, \"seconds\": %.6f, \"requests_s\": %.1f, \"cpu_seconds\": %.3f, ",
         samples.count, elapsed, (double)samples.count / elapsed, process_seconds(pid) - cpu);
  print_samples("answer", &samples);
  printf("}\n");
}
