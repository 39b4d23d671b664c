/* SPDX-License-Identifier: Apache-2.0 */

/* What a program with a connection takes without the library: resolve a name in
   a thread, connect, send "ruok", print the reply. */

#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static char **words;

static void *resolve(void *out)
{
  return (void *)(size_t)getaddrinfo(words[1], words[2], NULL, out);
}

int main(int argc, char **argv)
{
  struct addrinfo *addresses = NULL;
  pthread_t thread;
  void *result;
  char reply[80];
  ssize_t len;

  words = argv;
  if (argc != 3 || pthread_create(&thread, NULL, resolve, &addresses) != 0 ||
      pthread_join(thread, &result) != 0 || result != NULL)
    return EXIT_FAILURE;

  int fd = socket(addresses->ai_family, SOCK_STREAM, 0);

  if (connect(fd, addresses->ai_addr, addresses->ai_addrlen) != 0 ||
      write(fd, "ruok", 4) != 4 || (len = read(fd, reply, sizeof reply)) < 0)
    return EXIT_FAILURE;
  printf("%.*s\n", (int)len, reply);
  freeaddrinfo(addresses);
  return EXIT_SUCCESS;
}
