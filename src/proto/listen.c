/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/invariants.h"

#include <stdarg.h>
#include <stdio.h>

void lk_client_attach(lk_client *c, lk_listener *l)
{
  l->next = NULL;
  l->prev = c->listeners_last;
  if (l->prev == NULL)
    c->listeners = l;
  else
    l->prev->next = l;
  c->listeners_last = l;
}

void lk_client_detach(lk_client *c, lk_listener *l)
{
  if (l->prev == NULL && c->listeners != l)
    return; /* it is not attached */
  if (c->telling == l)
    c->telling = l == c->telling_last ? NULL : l->next;
  else if (c->telling_last == l)
    c->telling_last = l->prev;
  if (l->prev == NULL)
    c->listeners = l->next;
  else
    l->prev->next = l->next;
  if (l->next == NULL)
    c->listeners_last = l->prev;
  else
    l->next->prev = l->prev;
  l->next = NULL;
  l->prev = NULL;
}

/* Any listener may be detached while one is told: `telling` is then moved on.
 * Those attached meanwhile are not meant. One telling ends before the next
 * begins: what a listener can call tells nobody at once. */
static void begin_telling(lk_client *c)
{
  c->telling = c->listeners;
  c->telling_last = c->listeners_last;
}

static lk_listener *next_to_tell(lk_client *c)
{
  lk_listener *l = c->telling;

  if (l != NULL)
    c->telling = l == c->telling_last ? NULL : l->next;
  return l;
}

void lk__client_tell(lk_client *c, lk_state state, int err)
{
  c->state = state;
  begin_telling(c);
  for (lk_listener *l; (l = next_to_tell(c)) != NULL;) {
    lk__invariants_check(c, LK_MOMENT_CALLBACK);
    if (l->state != NULL)
      l->state(c, state, err, l->arg);
  }
}

void lk__client_tell_answer(lk_client *c, const lk_answer *answer)
{
  begin_telling(c);
  for (lk_listener *l; (l = next_to_tell(c)) != NULL;) {
    lk__invariants_check(c, LK_MOMENT_ANSWER);
    if (l->answer != NULL)
      l->answer(c, answer, l->arg);
  }
}

void lk_timer_start(lk_client *c, lk_timer *t, int64_t at_ms)
{
  lk__heap_remove(&c->timers, &t->node);
  lk__heap_add(&c->timers, &t->node, at_ms);
  lk__client_wake(c);
}

void lk_timer_stop(lk_client *c, lk_timer *t)
{
  lk__heap_remove(&c->timers, &t->node);
}

void lk_client_log(const lk_client *c, int level, int err, const char *text)
{
  if (c->log != NULL)
    c->log(c->log_arg, level, err, text);
}

void lk__client_logf(const lk_client *c, int level, int err, const char *format,
                     ...)
{
  char text[320];
  va_list args;

  if (c->log == NULL)
    return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  c->log(c->log_arg, level, err, text);
}
