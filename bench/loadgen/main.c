/* loadgen MODE name=value ... : drives a broker as fast as one C client can, and prints one line of JSON. */
#include "loadgen.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

volatile sig_atomic_t stop_asked = 0;

static int argument_count;
static char **arguments;

static void ask_to_stop(int signal_number) {
  (void)signal_number;
  stop_asked = 1;
}

void fail(const char *format, ...) {
  va_list values;
  va_start(values, format);
  vfprintf(stderr, format, values);
  va_end(values);
  fputc('\n', stderr);
  exit(1);
}

const char *text_option(const char *name, const char *otherwise) {
  size_t length = strlen(name);
  for (int i = 0; i < argument_count; i++)
    if (strncmp(arguments[i], name, length) == 0 && arguments[i][length] == '=') return arguments[i] + length + 1;
  if (otherwise == NULL) fail("%s= is missing", name);
  return otherwise;
}

int64_t number_option(const char *name, int64_t otherwise) {
  const char *text = text_option(name, "");
  return *text == '\0' ? otherwise : strtoll(text, NULL, 10);
}

double now_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void sleep_until(double when) {
  struct timespec target = {.tv_sec = (time_t)when, .tv_nsec = (long)((when - floor(when)) * 1e9)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &target, NULL);
}

static void on_client_error(rd_kafka_t *client, int error, const char *reason, void *opaque) {
  (void)client, (void)opaque;
  if (error == RD_KAFKA_RESP_ERR__FATAL) fail("fatal client error: %s", reason);
  fprintf(stderr, "client: %s\n", reason);
}

void set_client(rd_kafka_conf_t *conf, const char *name, const char *value) {
  char reason[512];
  if (rd_kafka_conf_set(conf, name, value, reason, sizeof reason) != RD_KAFKA_CONF_OK) fail("%s: %s", name, reason);
}

rd_kafka_conf_t *new_client_settings(void) {
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  rd_kafka_conf_set_error_cb(conf, on_client_error);
  set_client(conf, "bootstrap.servers", text_option("brokers", NULL));
  for (int i = 0; i < argument_count; i++) {
    char *equals = strchr(arguments[i], '=');
    if (strncmp(arguments[i], "rd.", 3) != 0 || equals == NULL) continue;
    char *name = strndup(arguments[i] + 3, (size_t)(equals - arguments[i] - 3));
    set_client(conf, name, equals + 1);
    free(name);
  }
  return conf;
}

rd_kafka_t *new_client(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
  char reason[512];
  rd_kafka_t *client = rd_kafka_new(type, conf, reason, sizeof reason);
  if (client == NULL) fail("no client: %s", reason);
  return client;
}

rd_kafka_topic_t *new_topic(rd_kafka_t *client, const char *name) {
  rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
  if (topic == NULL) fail("topic %s: %s", name, rd_kafka_err2str(rd_kafka_last_error()));
  return topic;
}

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
  return *state;
}

uint8_t *new_payload(size_t size, int compressible) {
  static const char *const words[] = {"strand", "line", "tide", "harbour", "salt", "wave", "shell", "current",
                                      "drift",  "reef", "sand", "lantern", "moor", "gull", "storm", "anchor"};
  uint64_t state = 0x9e3779b97f4a7c15u;
  uint8_t *payload = malloc(size);
  if (payload == NULL) fail("no memory for %zu bytes", size);
  size_t filled = 0;
  while (filled < size) {
    char piece[32];
    uint64_t dice = next_random(&state);
    int length = compressible ? snprintf(piece, sizeof piece, "%s:%06x,", words[dice & 15], (unsigned)(dice >> 40))
                              : (memcpy(piece, &dice, 8), 8);
    for (int i = 0; i < length && filled < size; i++) payload[filled++] = (uint8_t)piece[i];
  }
  return payload;
}

void add_sample(samples_t *samples, double seconds) {
  if (samples->count == samples->capacity) {
    samples->capacity = samples->capacity ? samples->capacity * 2 : 65536;
    samples->values = realloc(samples->values, samples->capacity * sizeof(double));
    if (samples->values == NULL) fail("no memory for samples");
  }
  samples->values[samples->count++] = seconds;
}

static int compare_doubles(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static double percentile_ms(const samples_t *samples, double share) {
  size_t index = (size_t)(share * (double)(samples->count - 1) + 0.5);
  return samples->values[index] * 1e3;
}

void print_samples(const char *name, samples_t *samples) {
  if (samples->count == 0) fail("no samples of %s", name);
  qsort(samples->values, samples->count, sizeof(double), compare_doubles);
  printf("\"%s\": {\"count\": %zu, \"p50_ms\": %.4f, \"p90_ms\": %.4f, \"p99_ms\": %.4f, \"p999_ms\": %.4f, "
         "\"max_ms\": %.4f}",
         name, samples->count, percentile_ms(samples, 0.5), percentile_ms(samples, 0.9), percentile_ms(samples, 0.99),
         percentile_ms(samples, 0.999), percentile_ms(samples, 1.0));
}

int main(int count, char **values) {
  static const struct {
    const char *name;
    void (*run)(void);
  } modes[] = {{"produce", run_produce},   {"consume", run_consume}, {"latency", run_latency},
               {"requests", run_requests}, {"drain", run_drain},     {"loopback", run_loopback},
               {"echo", run_echo},         {"switch", run_switch},   {"tail", run_tail},
               {"calls", run_calls}};
  struct sigaction on_stop = {.sa_handler = ask_to_stop};
  sigaction(SIGTERM, &on_stop, NULL);
  sigaction(SIGINT, &on_stop, NULL);
  signal(SIGPIPE, SIG_IGN);
  if (count < 2) fail("usage: loadgen produce|consume|latency|requests|drain|loopback|echo|switch|tail|calls name=value ...");
  argument_count = count - 2;
  arguments = values + 2;
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (strcmp(values[1], modes[i].name) == 0) {
      modes[i].run();
      return 0;
    }
  fail("unknown mode %s", values[1]);
}
