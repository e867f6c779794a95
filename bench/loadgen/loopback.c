/* loopback: how fast this machine moves bytes when nobody looks at them. The limit of any broker's figure.
 *
 * direction=out: a file in the page cache goes through sendfile to a reader that throws the bytes away (consume).
 * direction=in:  a writer sends from memory to a reader that writes them to a file (produce).
 *
 * direction=out megabytes=2000 file=/path (made here, removed here)
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loadgen.h"

#define CHUNK (1u << 20)
#define FILE_MEGABYTES 256

static int open_file(const char *path) {
  int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0) fail("cannot write %s", path);
  unlink(path);
  return file;
}

static void write_all(int file, const uint8_t *bytes, size_t size, int64_t position) {
  for (size_t done = 0; done < size;) {
    ssize_t written = pwrite(file, bytes + done, size - done, position + (int64_t)done);
    if (written <= 0) fail("the disk refused to take more");
    done += (size_t)written;
  }
}

static void send_file(int connection, int file, int64_t size) {
  const int64_t file_size = (int64_t)FILE_MEGABYTES * CHUNK;
  for (int64_t sent = 0; sent < size;) {
    off_t position = sent % file_size;
    int64_t most = file_size - position < size - sent ? file_size - position : size - sent;
    ssize_t count = sendfile(connection, file, &position, (size_t)(most < CHUNK ? most : CHUNK));
    if (count <= 0) fail("sendfile failed");
    sent += count;
  }
}

static void send_memory(int connection, const uint8_t *bytes, int64_t size) {
  for (int64_t sent = 0; sent < size;) {
    ssize_t count = send(connection, bytes, size - sent < CHUNK ? (size_t)(size - sent) : CHUNK, 0);
    if (count <= 0) fail("send failed");
    sent += count;
  }
}

static int64_t receive(int connection, uint8_t *buffer, int file) {
  int64_t received = 0;
  for (;;) {
    ssize_t count = recv(connection, buffer, CHUNK, 0);
    if (count < 0) fail("recv failed");
    if (count == 0) return received;
    if (file >= 0) write_all(file, buffer, (size_t)count, received);
    received += count;
  }
}

int listen_anywhere(struct sockaddr_in *address) {
  socklen_t length = sizeof *address;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(listener, (struct sockaddr *)address, length) != 0 || listen(listener, 1) != 0) fail("cannot listen");
  getsockname(listener, (struct sockaddr *)address, &length);
  return listener;
}

void run_loopback(void) {
  int outward = strcmp(text_option("direction", "out"), "out") == 0;
  int64_t size = number_option("megabytes", 2000) * 1000000;
  int file = open_file(text_option("file", NULL));
  uint8_t *buffer = new_payload(CHUNK, 0);
  if (outward)
    for (int i = 0; i < FILE_MEGABYTES; i++) write_all(file, buffer, CHUNK, (int64_t)i * CHUNK);
  struct sockaddr_in address;
  int listener = listen_anywhere(&address);
  pid_t sender = fork();
  if (sender < 0) fail("cannot fork");
  int connection = sender == 0 ? socket(AF_INET, SOCK_STREAM, 0) : accept(listener, NULL, NULL);
  if (sender == 0) {
    if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0) fail("cannot connect");
    if (outward)
      send_file(connection, file, size);
    else
      send_memory(connection, buffer, size);
    _exit(0);
  }
  double start = now_seconds();
  int64_t received = receive(connection, buffer, outward ? -1 : file);
  double elapsed = now_seconds() - start;
  waitpid(sender, NULL, 0);
  if (received != size) fail("received %lld of %lld bytes", (long long)received, (long long)size);
  printf("{\"mode\": \"loopback\", \"bytes\": %lld, \"seconds\": %.6f, \"mb_s\": %.3f}\n", (long long)received,
         elapsed, (double)received / elapsed / 1e6);
}
