/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SCRIPTS_TRANSCRIPTS_H
#define LK_SCRIPTS_TRANSCRIPTS_H

#include <stddef.h>

/** A file of tests/scripts: inputs and the outputs that must follow. */
typedef struct transcript {
  char *name;
  char *text;
} transcript;

extern transcript transcripts[];
extern size_t transcripts_count;

/** Read tests/scripts/`folder`/ *.txt in the order of their names. They replace
    the transcripts that were read before. */
void transcripts_load(const char *folder);
void transcripts_unload(void);
/** Read a file as text; the caller calls free(). */
char *transcripts_slurp(const char *path);
/** Fail if `got` is not the text of the transcript. The message has the first
    line that differs, and `how` the transcript was played. */
void transcripts_compare(const transcript *t, const char *got, const char *how);

#endif
