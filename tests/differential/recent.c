/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/recent.h"

#include "differential/normal_form.h"
#include "support/wire.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH_FIELD = 4 };

static struct recent_line *next_line(recent *s, uint64_t number, unsigned conn)
{
  struct recent_line *line = &s->lines[s->count++ % RECENT_LINES];

  if (line->frame.mem == NULL)
    line->frame = wire_buf();
  line->number = number;
  line->conn = conn;
  line->note[0] = '\0';
  lk__buf_consume(&line->frame, lk__buf_len(&line->frame));
  return line;
}

void recent_note(recent *s, uint64_t number, unsigned conn, const char *format,
                 ...)
{
  struct recent_line *line = next_line(s, number, conn);
  va_list args;

  va_start(args, format);
  vsnprintf(line->note, sizeof line->note, format, args);
  va_end(args);
}

void recent_frame(recent *s, uint64_t number, unsigned conn,
                  bool is_connect_request, const void *bytes, size_t len)
{
  struct recent_line *line = next_line(s, number, conn);

  line->is_connect_request = is_connect_request;
  if (!lk__buf_append(&line->frame, bytes, len))
    abort();
}

static void print_and_free_text(lk_buf *text)
{
  fwrite(lk__buf_bytes(text), 1, lk__buf_len(text), stderr);
  fputc('\n', stderr);
  lk__buf_free(text);
}

static void print_line(const struct recent_line *line)
{
  lk_buf text = wire_buf();

  wire_say(&text, "%7" PRIu64 "  conn %u  %s", line->number, line->conn,
           line->note);
  if (line->note[0] == '\0')
    wire_print(lk_bytes_of(lk__buf_bytes(&line->frame) + LENGTH_FIELD,
                           lk__buf_len(&line->frame) - LENGTH_FIELD),
               line->is_connect_request, &text);
  print_and_free_text(&text);
}

void recent_print(const recent *s)
{
  size_t first = s->count > RECENT_LINES ? s->count - RECENT_LINES : 0;

  for (size_t i = first; i < s->count; i++)
    print_line(&s->lines[i % RECENT_LINES]);
}

void recent_print_list(const list *l, size_t marked)
{
  for (size_t i = 0; i < l->count; i++) {
    lk_buf text = wire_buf();

    wire_say(&text, i == marked ? ">> " : "   ");
    normal_print(l->items[i].op, list_at(l, i), &text);
    print_and_free_text(&text);
  }
  if (marked >= l->count)
    fprintf(stderr, ">> (nothing)\n");
}

void recent_free(recent *s)
{
  for (size_t i = 0; i < RECENT_LINES; i++)
    lk__buf_free(&s->lines[i].frame);
}
