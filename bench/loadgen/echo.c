/* echo: the latency of this machine when nobody looks at the bytes. The floor of any broker's figure.
 *
 * Records are sent at a fixed rate to a process that sends them back at once; the time until they are here again. A
 * broker adds its own work and the threads of two clients to this; what the machine itself is late by, it cannot avoid.
 *
 * rate=1000 seconds=5 size=100
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loadgen.h"

static double *sent_at;
static int64_t total;
static size_t size;
static samples_t returned = {0};

static void send_all(int connection, const uint8_t *bytes, size_t count) {
  for (size_t done = 0; done < count;) {
    ssize_t sent = send(connection, bytes + done, count - done, 0);
    if (sent <= 0) fail("send failed");
    done += (size_t)sent;
  }
}

static void bounce(int connection) {
  uint8_t buffer[65536];
  ssize_t count;
  while ((count = recv(connection, buffer, sizeof buffer, 0)) > 0) send_all(connection, buffer, (size_t)count);
}

static void *receive(void *opaque) {
  int connection = *(int *)opaque;
  uint8_t *record = malloc(size);
  for (int64_t i = 0; i < total; i++) {
    if (recv(connection, record, size, MSG_WAITALL) != (ssize_t)size) fail("a record did not come back");
    add_sample(&returned, now_seconds() - sent_at[i]);
  }
  free(record);
  return NULL;
}

void run_echo(void) {
  double rate = (double)number_option("rate", 1000);
  total = (int64_t)(rate * (double)number_option("seconds", 5));
  size = (size_t)number_option("size", 100);
  sent_at = calloc((size_t)total, sizeof(double));
  struct sockaddr_in address;
  int listener = listen_anywhere(&address);
  pid_t echoer = fork();
  if (echoer < 0) fail("cannot fork");
  int at_once = 1;
  if (echoer == 0) {
    int accepted = accept(listener, NULL, NULL);
    setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    bounce(accepted);
    _exit(0);
  }
  int connection = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0) fail("cannot connect");
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
  pthread_t receiver;
  pthread_create(&receiver, NULL, receive, &connection);
  uint8_t *record = new_payload(size, 0);
  double start = now_seconds();
  for (int64_t i = 0; i < total; i++) {
    sleep_until(start + (double)i / rate);
    sent_at[i] = now_seconds();
    send_all(connection, record, size);
  }
  pthread_join(receiver, NULL);
  close(connection);
  waitpid(echoer, NULL, 0);
  printf("{\"mode\": \"echo\", ");
  print_samples("end_to_end", &returned);
  printf("}\n");
}
