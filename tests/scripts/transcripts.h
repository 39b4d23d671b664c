/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SCRIPTS_TRANSCRIPTS_H
#define LK_SCRIPTS_TRANSCRIPTS_H

#include <stddef.h>

/** A file of tests/scripts: inputs, and what they lead to. */
typedef struct transcript {
  char *name;
  char *text;
} transcript;

extern transcript transcripts[];
extern size_t transcripts_count;

/** Read tests/scripts/`folder`/ *.txt, in order of their names, in place of
    those that were read before. */
void transcripts_load(const char *folder);
void transcripts_unload(void);
/** A file as text, the C library's memory. */
char *transcripts_slurp(const char *path);
/** Fail where `got` is not the transcript; `how` it came about is added. */
void transcripts_compare(const transcript *t, const char *got, const char *how);

#endif
