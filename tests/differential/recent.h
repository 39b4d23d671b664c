/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_RECENT_H
#define LK_DIFFERENTIAL_RECENT_H

#include "differential/list.h"

/** The most recent requests and notes, which are printed after a difference.
    Initialise with zeros. */
enum { RECENT_LINES = 30 };

typedef struct recent {
  char command[120]; /**< the command that repeats the run */
  struct recent_line {
    uint64_t number; /**< of the request; of a note: of the request before */
    unsigned conn;
    char note[120]; /**< "": the line is a frame */
    bool is_connect_request;
    lk_buf frame;
  } lines[RECENT_LINES];
  size_t count; /**< lines so far, which include those overwritten since */
} recent;

void recent_note(recent *s, uint64_t number, unsigned conn, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));
/** A frame with its length field; decoded only when it is printed. */
void recent_frame(recent *s, uint64_t number, unsigned conn,
                  bool is_connect_request, const void *bytes, size_t len);
/** Print to standard error. */
void recent_print(const recent *s);
/** Print a list in normal form, and mark the item with index `marked`. */
void recent_print_list(const list *l, size_t marked);
void recent_free(recent *s);

#endif
