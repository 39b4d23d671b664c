/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "scripts/transcripts.h"

#include "support/wire.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { FILES_MAX = 200 };

transcript transcripts[FILES_MAX];
size_t transcripts_count;

char *transcripts_read_file(const char *path)
{
  lk_buf b = wire_buf();
  FILE *in = fopen(path, "rb");
  char room[4096];
  size_t got;

  if (in == NULL) {
    perror(path);
    exit(EXIT_FAILURE);
  }
  while ((got = fread(room, 1, sizeof room, in)) > 0)
    if (!lk__buf_append(&b, room, got))
      abort();
  fclose(in);
  wire_say(&b, "%c", '\0');
  return (char *)lk__buf_bytes(&b); /* wire_buf() uses malloc() */
}

static int compare_names(const void *a, const void *b)
{
  return strcmp(((const transcript *)a)->name, ((const transcript *)b)->name);
}

void transcripts_load(const char *name)
{
  const char *srcdir = getenv("srcdir");
  char folder[4096], path[8192];

  transcripts_unload();
  snprintf(folder, sizeof folder, "%s/tests/scripts/%s",
           srcdir == NULL ? "." : srcdir, name);
  DIR *d = opendir(folder);

  if (d == NULL) {
    perror(folder);
    exit(EXIT_FAILURE);
  }
  struct dirent *e;

  while ((e = readdir(d)) != NULL) {
    if (strstr(e->d_name, ".txt") == NULL)
      continue;
    if (transcripts_count == FILES_MAX)
      abort();
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    transcripts[transcripts_count++] = (transcript){
        .name = strdup(e->d_name), .text = transcripts_read_file(path)};
  }
  closedir(d);
  qsort(transcripts, transcripts_count, sizeof transcripts[0], compare_names);
}

void transcripts_unload(void)
{
  while (transcripts_count > 0) {
    free(transcripts[--transcripts_count].name);
    free(transcripts[transcripts_count].text);
  }
}

void transcripts_compare(const transcript *t, const char *played,
                         const char *how)
{
  const char *expected = t->text;
  size_t line = 1, line_start = 0;

  if (strcmp(played, expected) == 0)
    return;
  for (size_t i = 0; played[i] == expected[i]; i++) {
    if (played[i] == '\n') {
      line++;
      line_start = i + 1;
    }
  }
  ck_abort_msg("%s:%zu%s\nexpected: %.*s\nit did:   %.*s", t->name, line, how,
               (int)strcspn(expected + line_start, "\n"), expected + line_start,
               (int)strcspn(played + line_start, "\n"), played + line_start);
}
