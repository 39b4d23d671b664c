/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "scripts/transcripts.h"

#include "support/wire.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_FILES = 200 };

transcript transcripts[MAX_FILES];
size_t transcripts_count;

char *transcripts_slurp(const char *path)
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
  return (char *)lk__buf_bytes(&b); /* malloc() gave it, so free() works */
}

static int by_name(const void *a, const void *b)
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
  for (struct dirent *e;
       (e = readdir(d)) != NULL && transcripts_count < MAX_FILES;) {
    if (strstr(e->d_name, ".txt") == NULL)
      continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    transcripts[transcripts_count].name = strdup(e->d_name);
    transcripts[transcripts_count++].text = transcripts_slurp(path);
  }
  closedir(d);
  qsort(transcripts, transcripts_count, sizeof transcripts[0], by_name);
}

void transcripts_unload(void)
{
  while (transcripts_count > 0) {
    free(transcripts[--transcripts_count].name);
    free(transcripts[transcripts_count].text);
  }
}

void transcripts_compare(const transcript *t, const char *got, const char *how)
{
  const char *want = t->text;
  size_t line = 1, at = 0, start = 0;

  if (strcmp(got, want) == 0)
    return;
  for (; got[at] == want[at]; at++) {
    if (got[at] == '\n') {
      line++;
      start = at + 1;
    }
  }
  ck_abort_msg("%s:%zu%s\nexpected: %.*s\nit did:   %.*s", t->name, line, how,
               (int)strcspn(want + start, "\n"), want + start,
               (int)strcspn(got + start, "\n"), got + start);
}
