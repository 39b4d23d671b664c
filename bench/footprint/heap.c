/* SPDX-License-Identifier: Apache-2.0 */

/* The heap of idle sessions: connect with one client, then with a second one.
   Print what the driver has with one session, and what the second session has
   added, in bytes that the library has requested. */

#include <inttypes.h>
#include <latchkey/latchkey.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t heap_bytes, heap_blocks;

/* In front of each block: its size. */
typedef union header {
  size_t size;
  max_align_t alignment;
} header;

/* As lk_mem.resize: a size of 0 frees the block. */
static void *count_resize(void *arg, void *p, size_t size)
{
  header *block = p == NULL ? NULL : (header *)p - 1;
  size_t old_size = block == NULL ? 0 : block->size;

  (void)arg;
  if (size == 0) {
    heap_blocks -= block != NULL;
    heap_bytes -= old_size;
    free(block);
    return NULL;
  }
  block = realloc(block, sizeof *block + size);
  if (block == NULL)
    return NULL;
  heap_blocks += p == NULL;
  heap_bytes += size - old_size;
  block->size = size;
  return block + 1;
}

static int reads;

static void on_read(lk_client *client, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  (void)client;
  (void)data;
  (void)stat;
  (void)arg;
  if (err != 0) {
    fprintf(stderr, "%s\n", lk_error_text(err));
    exit(EXIT_FAILURE);
  }
  reads++;
}

/* Connect one more client, and have it read a node. */
static void connect_client(lk_poll *poll, const char *hosts)
{
  static const lk_mem counting = {.resize = count_resize};
  lk_client_config config = {
      .size = sizeof(config), .hosts = hosts, .mem = &counting};
  lk_client *client;
  int before = reads;

  if (lk_poll_client_new(&client, poll, &config) != 0 ||
      lk_get(client, "/", NULL, on_read, NULL) != 0)
    exit(EXIT_FAILURE);
  while (reads == before)
    lk_poll_run_once(poll, -1);
  lk_poll_run_once(poll, 0); /* updates what follows from the reply */
}

int main(int argc, char **argv)
{
  static const lk_mem counting = {.resize = count_resize};
  const char *hosts = argc > 1 ? argv[1] : "127.0.0.1:2181";
  lk_poll *poll;

  if (lk_poll_new(&poll, &counting) != 0)
    return EXIT_FAILURE;
  connect_client(poll, hosts);

  size_t bytes = heap_bytes, blocks = heap_blocks;

  connect_client(poll, hosts);
  printf("%zu bytes in %zu blocks for the driver and a session\n", bytes,
         blocks);
  printf("%zu bytes in %zu blocks for one more session\n", heap_bytes - bytes,
         heap_blocks - blocks);
  lk_poll_free(poll);
  return heap_blocks == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
