/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * unfold trace: print the content of each frame of vectors.txt; vectors.trace
 * is this output. unfold corpus DIR: write each record to a file, as an input
 * for fuzz_records. unfold streams DIR: write the bytes that the server has
 * sent in each exchange to a file, as an input for fuzz_frames. See
 * script/corpus.
 */

#include "vectors/relay.h"

#include <stdio.h>
#include <stdlib.h>

enum { LENGTH_FIELD = 4 };

/* Called by relay_run() for each record. The file begins with the number of the
   record, as fuzz_records expects it. */
static void save_record(void *arg, const vector *frame, size_t which,
                        const char *name, lk_bytes bytes)
{
  const char *dir = arg;
  char path[4096];
  FILE *out;

  if (strstr(name, "_header") != NULL && strcmp(frame->name, "ping") != 0)
    return; /* one example of the headers is enough */
  snprintf(path, sizeof path, "%s/%s-%s", dir, frame->name, name);
  out = fopen(path, "wb");
  if (out == NULL || fputc((int)which, out) == EOF ||
      fwrite(bytes.at, 1, bytes.len, out) != bytes.len || fclose(out) != 0) {
    perror(path);
    exit(EXIT_FAILURE);
  }
}

static void save_records(const vectors *all, char *dir)
{
  for (size_t i = 0; i < all->count; i++) {
    const vector *v = &all->frames[i];
    relay r = {
        .frame = v, .mem = &lk__mem_libc, .seen = save_record, .arg = dir};

    if (!relay_is_frame(v))
      continue;
    relay_run(&r, v->bytes + LENGTH_FIELD, v->len - LENGTH_FIELD);
    relay_clear(&r);
  }
}

/* What fuzz_frames expects in front of a stream: a limit of two bytes, and a
   number that says into which pieces the stream is cut. */
static const unsigned char before_stream[] = {0xff, 0xff, 7};

static FILE *begin_stream(const char *dir, const char *name)
{
  char path[4096];

  snprintf(path, sizeof path, "%s/%s", dir, name);
  FILE *out = fopen(path, "wb");

  if (out == NULL || fwrite(before_stream, sizeof before_stream, 1, out) != 1) {
    perror(path);
    exit(EXIT_FAILURE);
  }
  return out;
}

static void end_stream(FILE *out)
{
  if (out != NULL && fclose(out) != 0) {
    perror("a stream");
    exit(EXIT_FAILURE);
  }
}

/* The frames of an exchange stand together. */
static void save_streams(const vectors *all, const char *dir)
{
  const char *name = "";
  FILE *out = NULL;

  for (size_t i = 0; i < all->count; i++) {
    const vector *v = &all->frames[i];

    if (!v->from_server || v->len == 0)
      continue;
    if (strcmp(v->name, name) != 0) {
      end_stream(out);
      name = v->name;
      out = begin_stream(dir, name);
    }
    fwrite(v->bytes, 1, v->len, out);
  }
  end_stream(out);
}

static void print_all(const vectors *all)
{
  lk_buf out = {.mem = &lk__mem_libc};

  for (size_t i = 0; i < all->count; i++)
    relay_line(&all->frames[i], &out);
  fwrite(lk__buf_bytes(&out), 1, lk__buf_len(&out), stdout);
  lk__buf_free(&out);
}

int main(int argc, char **argv)
{
  vectors all = vectors_load(NULL);

  if (argc == 3 && strcmp(argv[1], "corpus") == 0)
    save_records(&all, argv[2]);
  else if (argc == 3 && strcmp(argv[1], "streams") == 0)
    save_streams(&all, argv[2]);
  else if (argc == 2 && strcmp(argv[1], "trace") == 0)
    print_all(&all);
  else
    fprintf(stderr, "usage: unfold trace | corpus DIR | streams DIR\n");
  vectors_free(&all);
  return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
