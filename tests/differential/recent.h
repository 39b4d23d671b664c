/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_RECENT_H
#define LK_DIFFERENTIAL_RECENT_H

#include "differential/list.h"

/** The most recent requests, which are printed after a difference. All members
    are initialised with zeros. */
enum { RECENT_LINES = 30 };

typedef struct recent {
  char command[120]; /**< the command that repeats the run */
  struct recent_line {
    uint64_t number; /**< of the request */
    unsigned conn;
    char note[120]; /**< "": the line is a frame */
    bool hello;
    lk_buf frame;
  } lines[RECENT_LINES];
  size_t count; /**< number of all lines so far */
} recent;

void recent_note(recent *s, uint64_t number, unsigned conn, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));
/** A frame with its length field; decoded only when it is printed. */
void recent_frame(recent *s, uint64_t number, unsigned conn, bool hello,
                  const void *bytes, size_t len);
/** Print to standard error. */
void recent_print(const recent *s);
/** Print a list in normal form, and mark one item. */
void recent_print_list(const list *l, size_t mark);
void recent_free(recent *s);

#endif
