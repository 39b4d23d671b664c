/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_RECENT_H
#define LK_DIFFERENTIAL_RECENT_H

#include "differential/list.h"

/** The last things that were sent, to be told if they led to something. Zero it
    to begin. */
enum { STORY_LINES = 30 };

typedef struct recent {
  char again[120]; /**< the command that does all of it again */
  struct recent_line {
    uint64_t number; /**< of the request */
    unsigned conn;
    char note[120]; /**< "": a frame */
    bool hello;
    lk_buf frame;
  } lines[STORY_LINES];
  size_t count; /**< of all lines so far */
} recent;

void recent_note(recent *s, uint64_t number, unsigned conn, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));
/** A frame with its length, which is only read when it is told. */
void recent_frame(recent *s, uint64_t number, unsigned conn, bool hello,
                  const void *bytes, size_t len);
/** To standard error. */
void recent_tell(const recent *s);
/** What came, in plain form; `mark` one of it. */
void recent_tell_list(const list *l, size_t mark);
void recent_free(recent *s);

#endif
