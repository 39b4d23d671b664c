/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * main() for a fuzz target without libFuzzer. Runs it on each named file and on
 * each file of each named folder, without subfolders; on standard input if
 * nothing is named (for AFL). An empty folder is an error.
 */

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int complain(const char *name)
{
  fprintf(stderr, "%s: %s\n", name, strerror(errno));
  return -1;
}

/* All of `in`; the result is malloc'ed, NULL with errno set. */
static uint8_t *slurp(FILE *in, size_t *size)
{
  size_t room = 65536, got;
  uint8_t *data = malloc(room), *more;

  for (*size = 0; data != NULL; *size += got) {
    if (*size == room) {
      room *= 2;
      more = realloc(data, room);
      if (more == NULL)
        free(data);
      data = more;
      got = 0;
      continue;
    }
    got = fread(data + *size, 1, room - *size, in);
    if (got == 0)
      break;
  }
  return data;
}

/* In a block of exactly its size, so that a sanitizer reports a read beyond the
 * end. */
static int run_stream(FILE *in, const char *name)
{
  size_t size;
  uint8_t *data = slurp(in, &size);
  uint8_t *exact = malloc(size == 0 ? 1 : size);

  if (data == NULL || exact == NULL) {
    free(data);
    free(exact);
    return complain(name);
  }
  memcpy(exact, data, size);
  free(data);
  LLVMFuzzerTestOneInput(exact, size);
  free(exact);
  return 0;
}

static int run_file(const char *name)
{
  FILE *in = fopen(name, "rb");
  int result;

  if (in == NULL)
    return complain(name);
  /* If the program dies, the last name in the log is the input that caused
   * it. */
  puts(name);
  fflush(stdout);
  result = run_stream(in, name);
  fclose(in);
  return result;
}

static int run_folder(const char *name)
{
  DIR *folder = opendir(name);
  struct dirent *entry;
  char path[4096];
  int count = 0, result = 0;

  if (folder == NULL)
    return complain(name);
  while (result == 0 && (entry = readdir(folder)) != NULL) {
    if (entry->d_name[0] == '.')
      continue;
    snprintf(path, sizeof(path), "%s/%s", name, entry->d_name);
    result = run_file(path);
    count++;
  }
  closedir(folder);
  if (count == 0)
    fprintf(stderr, "%s: there is nothing to replay\n", name);
  return count == 0 ? -1 : result;
}

int main(int argc, char **argv)
{
  struct stat st;
  int result = 0;

  if (argc == 1)
    result = run_stream(stdin, "standard input");
  for (int i = 1; i < argc && result == 0; i++) {
    if (stat(argv[i], &st) != 0)
      result = complain(argv[i]);
    else if (S_ISDIR(st.st_mode))
      result = run_folder(argv[i]);
    else
      result = run_file(argv[i]);
  }
  return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
