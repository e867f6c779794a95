/* What the modes of the load generator share: arguments, time, samples, a client handle, one line of JSON at the end. */
#ifndef STRANDLINE_BENCH_LOADGEN_H
#define STRANDLINE_BENCH_LOADGEN_H

#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "librdkafka.h"

/* Set by SIGTERM and SIGINT: a mode that runs until told to stop looks at it and still prints its result. */
extern volatile sig_atomic_t stop_asked;

/* Print a sentence to stderr and exit with 1. Nothing is measured when anything went wrong. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Arguments have the form name=value; names that begin with "rd." are settings of librdkafka. */
const char *text_option(const char *name, const char *otherwise);
int64_t number_option(const char *name, int64_t otherwise);

double now_seconds(void);
void sleep_until(double when);

/* A client with brokers= and all rd.* settings applied; `dr` may be NULL. Fails on a fatal client error. */
rd_kafka_conf_t *new_client_settings(void);
void set_client(rd_kafka_conf_t *conf, const char *name, const char *value);
rd_kafka_t *new_client(rd_kafka_type_t type, rd_kafka_conf_t *conf);
rd_kafka_topic_t *new_topic(rd_kafka_t *client, const char *name);

/* Bytes to send: random text that lz4 shrinks to about a half when `compressible`, random bytes when not. */
uint8_t *new_payload(size_t size, int compressible);

/* Durations in seconds, kept as they come; `print_samples` sorts them and prints percentiles in milliseconds. */
typedef struct {
  double *values;
  size_t count, capacity;
} samples_t;

void add_sample(samples_t *samples, double seconds);
void print_samples(const char *name, samples_t *samples);

/* A listening socket on a free port of the loopback interface. */
int listen_anywhere(struct sockaddr_in *address);

void run_produce(void);
void run_consume(void);
void run_latency(void);
void run_requests(void);
void run_drain(void);
void run_loopback(void);
void run_echo(void);
void run_switch(void);
void run_tail(void);
void run_calls(void);

/* CPU seconds that a process has used so far, in steps of a hundredth. */
double process_seconds(int64_t pid);

#endif
