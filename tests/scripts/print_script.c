/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * print_script FILE...: plays transcripts, and prints their inputs with the
 * actual outputs. Its user reads the outputs before they become the new
 * transcript. Files in a folder called lock are played with locks, others with
 * a client.
 */

#include "scripts/lock_play.h"
#include "scripts/play.h"
#include "scripts/transcripts.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_script(const char *path)
{
  lk_buf out = wire_buf();
  char *text = transcripts_read_file(path);

  if (strstr(path, "lock/") != NULL)
    lock_play(text, NULL, &out);
  else
    play(text, NULL, &out);
  fwrite(lk__buf_bytes(&out), 1, lk__buf_len(&out), stdout);
  lk__buf_free(&out);
  free(text);
}

int main(int argc, char **argv)
{
  for (int i = 1; i < argc; i++)
    print_script(argv[i]);
  return argc > 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
