/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Plays tests/transcripts/session/ *.txt. With a file as argument it prints
 * what the client does now, to be read before it is made the transcript.
 */

#include "fake/play.h"
#include "fake/wire.h"
#include "suite.h"

#include <dirent.h>
#include <stdio.h>

enum { MAX_FILES = 200 };

typedef struct transcript {
  char *name;
  char *text;
} transcript;

static transcript transcripts[MAX_FILES];
static size_t count;

static char *slurp(const char *path)
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
  return (char *)lk__buf_bytes(&b); /* the C library's memory */
}

static int by_name(const void *a, const void *b)
{
  return strcmp(((const transcript *)a)->name, ((const transcript *)b)->name);
}

static void load_all(void)
{
  const char *srcdir = getenv("srcdir");
  char folder[4096], path[8192];

  snprintf(folder, sizeof folder, "%s/tests/transcripts/session",
           srcdir == NULL ? "." : srcdir);
  DIR *d = opendir(folder);

  if (d == NULL) {
    perror(folder);
    exit(EXIT_FAILURE);
  }
  for (struct dirent *e; (e = readdir(d)) != NULL && count < MAX_FILES;) {
    if (strstr(e->d_name, ".txt") == NULL)
      continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    transcripts[count].name = strdup(e->d_name);
    transcripts[count++].text = slurp(path);
  }
  closedir(d);
  qsort(transcripts, count, sizeof transcripts[0], by_name);
}

static void unload(void)
{
  while (count > 0) {
    free(transcripts[--count].name);
    free(transcripts[count].text);
  }
}

/* Where two texts part, as a message. */
static void compare(const transcript *t, const char *got, const char *how)
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

static void play_and_compare(const transcript *t, play_mode *mode,
                             const char *how)
{
  lk_buf out = wire_buf();

  play(t->text, mode, &out);
  wire_say(&out, "%c", '\0');
  compare(t, (char *)lk__buf_bytes(&out), how);
  lk__buf_free(&out);
}

START_TEST(the_client_does_what_the_transcripts_say)
{
  ck_assert_uint_gt(count, 20);
  for (size_t i = 0; i < count; i++)
    play_and_compare(&transcripts[i], NULL, "");
}
END_TEST

START_TEST(it_does_the_same_when_bytes_come_and_go_one_by_one)
{
  play_mode mode = {.step = 1};

  for (size_t i = 0; i < count; i++)
    play_and_compare(&transcripts[i], &mode, ", byte by byte");
}
END_TEST

/* The transcript cannot tell what happens then, but the peer sees whether
 * every request ends once and all memory comes back. */
static void play_roughly(const transcript *t, play_mode *mode)
{
  lk_buf out = wire_buf();

  play(t->text, mode, &out);
  lk__buf_free(&out);
}

START_TEST(each_allocation_may_fail_in_any_transcript)
{
  for (size_t i = 0; i < count; i++) {
    play_mode mode = {.failed = true};

    for (size_t n = 1; mode.failed; n++) {
      mode = (play_mode){.fail_at = n};
      play_roughly(&transcripts[i], &mode);
    }
  }
}
END_TEST

START_TEST(memory_may_be_gone_for_good_at_any_time)
{
  for (size_t i = 0; i < count; i++) {
    play_mode mode = {.failed = true};

    for (size_t n = 1; mode.failed; n++) {
      mode = (play_mode){.fail_at = n, .for_good = true};
      play_roughly(&transcripts[i], &mode);
    }
  }
}
END_TEST

START_TEST(the_server_may_hang_up_after_any_byte)
{
  for (size_t i = 0; i < count; i++) {
    play_mode mode = {.failed = true};

    for (size_t at = 0; mode.failed && at < 5000; at++) {
      mode = (play_mode){.cut = true, .at = at};
      play_roughly(&transcripts[i], &mode);
    }
  }
}
END_TEST

static int print(const char *path)
{
  lk_buf out = wire_buf();
  char *text = slurp(path);

  play(text, NULL, &out);
  fwrite(lk__buf_bytes(&out), 1, lk__buf_len(&out), stdout);
  lk__buf_free(&out);
  free(text);
  return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
  const TTest *const tests[] = {
      the_client_does_what_the_transcripts_say,
      it_does_the_same_when_bytes_come_and_go_one_by_one,
      each_allocation_may_fail_in_any_transcript,
      memory_may_be_gone_for_good_at_any_time,
      the_server_may_hang_up_after_any_byte};

  if (argc > 1)
    return print(argv[1]);
  load_all();
  int result = suite_run("session", tests, sizeof tests / sizeof tests[0]);

  unload();
  return result;
}
