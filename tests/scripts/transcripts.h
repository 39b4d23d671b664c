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
/** Read a file as text, which the caller frees. Ends the program if the file
    cannot be read. */
char *transcripts_read_file(const char *path);
/** Fail if `played` is not the text of the transcript. The message has the name
    of the transcript, `how` it was played, and the first line that differs. */
void transcripts_compare(const transcript *t, const char *played,
                         const char *how);

#endif
