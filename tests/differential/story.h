/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_STORY_H
#define LK_DIFFERENTIAL_STORY_H

#include "differential/list.h"

/** The last things that were sent, to be told if they led to something. Zero it
    to begin. */
enum { STORY_LINES = 30 };

typedef struct story {
  char again[120]; /**< the command that does all of it again */
  struct story_line {
    uint64_t number; /**< of the request */
    unsigned conn;
    char note[120]; /**< "": a frame */
    bool hello;
    lk_buf frame;
  } lines[STORY_LINES];
  size_t count; /**< of all lines so far */
} story;

void story_note(story *s, uint64_t number, unsigned conn, const char *format,
                ...) __attribute__((format(printf, 4, 5)));
/** A frame with its length, which is only read when it is told. */
void story_frame(story *s, uint64_t number, unsigned conn, bool hello,
                 const void *bytes, size_t len);
/** To standard error. */
void story_tell(const story *s);
/** What came, in plain form; `mark` one of it. */
void story_tell_list(const list *l, size_t mark);
void story_free(story *s);

#endif
