/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_WORDS_H
#define LK_SUPPORT_WORDS_H

#include <latchkey/types.h>

#include "base/buf.h"

/** A line of a transcript, cut at blanks. In quotes, which keep blanks, \xNN
    stands for a byte. */
typedef struct word {
  char *text; /**< ends with a NUL; points into the words */
  size_t len;
  bool quoted;
} word;

typedef struct words {
  char room[4096];
  word items[64];
  size_t count;
  size_t at; /**< the next to be taken */
} words;

/** Aborts if the line cannot be read. */
void words_cut(words *w, const char *line, size_t len);
/** The next word; aborts with `what` if there is none. */
const word *words_take(words *w, const char *what);
const char *words_text(words *w, const char *what);
/** Text in quotes, or null. */
lk_bytes words_bytes(words *w, const char *what);
int64_t words_number(words *w, const char *what);
/** Whether the next word is `text`; if so it is taken. */
bool words_are(words *w, const char *text);
/** If the next word is `key`=something, take it and give that; else NULL. */
const char *words_value(words *w, const char *key);
bool words_left(const words *w);
/** The number of an error by its name; 0 for "ok". Aborts for no such name. */
int words_error(words *w);
/** Add the rest of the line to `out` as bytes of a frame: "text" a ustring,
    null, int=N, long=N, count=N, stat=CZXID, part=TYPE,ERR of a multi, end of
    a multi, hex=BYTES, zeros=N. */
void words_encode(words *w, lk_buf *out);

#endif
