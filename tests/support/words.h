/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_WORDS_H
#define LK_SUPPORT_WORDS_H

#include <latchkey/types.h>

#include "base/buf.h"

/** A word of a line of a transcript. Blanks separate words, except inside of
    quotes; \xNN stands for a byte. */
typedef struct word {
  char *text; /**< in words.room, with a NUL at the end */
  size_t len;
  bool quoted;
} word;

/** The words of a line. */
typedef struct words {
  char room[4096];
  word items[64];
  size_t count;
  size_t at; /**< the index of the next word to be taken */
} words;

/** Split a line into words; aborts if the line is malformed. */
void words_cut(words *w, const char *line, size_t len);
/** The next word; aborts with `what` if there is none. */
const word *words_take(words *w, const char *what);
const char *words_text(words *w, const char *what);
/** The next word as bytes; the word null, without quotes, gives `at` NULL. */
lk_bytes words_bytes(words *w, const char *what);
int64_t words_number(words *w, const char *what);
/** Whether the next word is `text`; if so, the word is taken. */
bool words_are(words *w, const char *text);
/** If the next word is `key`=VALUE, take the word and return VALUE; else NULL.
 */
const char *words_value(words *w, const char *key);
bool words_left(const words *w);
/** Take the name of an error and return its number; "ok" is 0. Aborts if there
    is no such error. */
int words_error(words *w);
/** Encode the rest of the line as part of a frame, and append it to `out`.
    Words are "TEXT" (a ustring), null, int=N, long=N, count=N, stat=CZXID,
    hex=BYTES, zeros=N, and for a multi part=TYPE,ERR and end. */
void words_encode(words *w, lk_buf *out);

#endif
