/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Every function is called in every kind of callback. The same transcript of a
 * client is played again and again, each time with another call in another
 * callback. The harness checks that the client keeps its contract.
 */

#include "scripts/play.h"
#include "support/suite.h"
#include "support/wire.h"

#include <stdio.h>

static const char life[] =
    "> listen l2 answers\n"
    "> listen l3\n"
    "> auth id digest \"bob:secret\"\n"
    "> get waits /a\n"
    "> connected\n"
    "> welcome 0x10 6000\n"
    "> reply -4 0 ok\n"
    "> reply 1 5 ok \"\" stat=5\n"
    "> get g /a watch=wd\n"
    "> exists e /no watch=we\n"
    "> children k /a watch=wc until-break\n"
    "> get late /b watch=wl timeout=300\n"
    "> create c /a \"\"\n"
    "> create2 c2 /a \"\" sequential\n"
    "> set s /a \"\" -1\n"
    "> delete d /a -1\n"
    "> sync y /a\n"
    "> multi m check /a 1 set /a \"\" 1\n"
    "> timer t 300\n"
    "> bytes int=30 int=-1 long=-1 int=0 int=4 int=3 hex=000000022f61\n"
    "> reply 2 5 ok \"\" stat=5\n"
    "> reply 3 5 NO_NODE\n"
    "> reply 4 5 ok count=1 \"n\" stat=5\n"
    "> time +300\n"
    "> reply 5 5 ok \"\" stat=5\n"
    "> reply 6 6 ok \"/a\"\n"
    "> reply 7 6 ok \"/a0000000001\" stat=6\n"
    "> reply 8 7 ok stat=7\n"
    "> reply 9 8 ok\n"
    "> reply 10 8 ok \"/a\"\n"
    "> reply 11 9 ok part=13,0 part=5,0 stat=9 end\n"
    "> event 3 /a\n"
    "> get g5 /a watch=wd repeat\n"
    "> get g6 /lost\n"
    "> create c6 /lost \"\"\n"
    "> closed\n"
    "> time +400\n"
    "> connected\n"
    "> welcome 0x10 6000\n"
    "> reply -4 0 ok\n"
    "> event 1 /no\n"
    "> reply -8 9 ok\n"
    "> reply 15 9 ok \"\" stat=9\n"
    "> get g7 /gone\n"
    "> closed\n"
    "> create c7 /gone \"\"\n"
    "> time +400\n"
    "> connected\n"
    "> welcome 0 0\n"
    "> connected\n"
    "> welcome 0x11 6000\n"
    "> get g8 /a watch=w8\n"
    "> reply 1 5 ok \"\" stat=5\n"
    "> auth id2 digest \"eve:secret\"\n"
    "> get g9 /b\n"
    "> close bye\n"
    "> reply 2 5 NO_NODE\n"
    "> reply 3 6 ok\n"
    "> free\n";

/* The callbacks in that transcript, as its "on" command names them. */
static const char *const callbacks[] = {
    "id",
    "waits",
    "g",
    "e",
    "k",
    "late",
    "c",
    "c2",
    "s",
    "d",
    "y",
    "m",
    "t",
    "wd",
    "wc",
    "we",
    "g5",
    "g6:CONNECTION_LOSS",
    "c6:IN_DOUBT",
    "g7:CONNECTION_LOSS",
    "c7:SESSION_EXPIRED",
    "w8:ended",
    "id2",
    "bye",
    "l2:answer",
    "state:connected",
    "l2:connected",
    "l3:connected",
    "state:suspended",
    "l3:suspended",
    "state:expired",
    "l2:expired",
    "state:connecting",
    "state:closed",
    "l2:closed",
    "l3:closed",
};

static const char *const calls[] = {
    "free",
    "close end",
    "cancel wd server",
    "cancel wc",
    "cancel we server",
    "cancel wl server",
    "cancel w8",
    /* FREE_CLOSE_AND_CANCELS end here. */
    "get x1 /a watch=x2",
    "get x1 /a watch=x2 repeat timeout=1 until-break",
    "exists x1 /no watch=x2",
    "create x1 /x \"\" ephemeral sequential",
    "multi x1 delete /x 1",
    "auth x1 digest \"x\"",
    "unlisten l2",
    "unlisten l3",
    "listen l4 answers",
    "timer t 1",
    "timer x1 0",
    "stop t",
};

enum { TEXT_SIZE = sizeof life + 512 };

/* Write the transcript to `text`. In the callback, `call` is called, and then
   `second_call` unless it is NULL. */
static void compose(char *text, const char *options, const char *callback,
                    const char *call, const char *second_call)
{
  lk_buf b = wire_buf();

  wire_say(&b, "> new hosts=a,b timeout=6000%s\n", options);
  wire_say(&b, "> on %s %s\n", callback, call);
  if (second_call != NULL)
    wire_say(&b, "> on %s %s\n", callback, second_call);
  ck_assert(lk__buf_append(&b, life, sizeof life));
  ck_assert_uint_le(lk__buf_len(&b), TEXT_SIZE);
  memcpy(text, lk__buf_bytes(&b), lk__buf_len(&b));
  lk__buf_free(&b);
}

/* The first calls of the list. */
enum { FREE_CLOSE_AND_CANCELS = 7 };

static bool contains(lk_buf *out, const char *text)
{
  wire_say(out, "%c", '\0');
  return strstr((char *)lk__buf_bytes(out), text) != NULL;
}

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

START_TEST(every_call_is_allowed_in_every_callback)
{
  char text[TEXT_SIZE];

  for (size_t i = 0; i < COUNT(callbacks); i++) {
    for (size_t j = 0; j < COUNT(calls); j++) {
      lk_buf out = wire_buf();
      play_mode mode = {.step = 0};

      compose(text, "", callbacks[i], calls[j], NULL);
      play(text, &mode, &out);
      ck_assert_msg(mode.undone == 0, "%s was never called", callbacks[i]);
      ck_assert(contains(&out, "\nfreed\n"));
      lk__buf_free(&out);
    }
  }
}
END_TEST

/* To save time, each pair of a callback and a call is tried with a seventh of
   the allocations failing, other calls with others. */
START_TEST(every_call_is_allowed_with_one_session_and_without_memory)
{
  char text[TEXT_SIZE];

  for (size_t i = 0; i < COUNT(callbacks); i++) {
    for (size_t j = 0; j < COUNT(calls); j++) {
      play_mode mode = {.failed = true};

      compose(text, " one-session", callbacks[i], calls[j], NULL);
      for (size_t n = 1; mode.failed; n += 7) {
        lk_buf out = wire_buf();

        mode = (play_mode){.fail_at = n + j % 7};
        play(text, &mode, &out);
        lk__buf_free(&out);
      }
    }
  }
}
END_TEST

START_TEST(two_calls_are_allowed_in_one_callback)
{
  char text[TEXT_SIZE];

  for (size_t i = 0; i < COUNT(callbacks); i++) {
    for (size_t j = 0; j < FREE_CLOSE_AND_CANCELS; j++) {
      for (size_t k = 0; k < COUNT(calls); k++) {
        lk_buf out = wire_buf();

        compose(text, "", callbacks[i], calls[j], calls[k]);
        play(text, NULL, &out);
        ck_assert(contains(&out, "\nfreed\n"));
        lk__buf_free(&out);
      }
    }
  }
}
END_TEST

SUITE("reentrancy", every_call_is_allowed_in_every_callback,
      every_call_is_allowed_with_one_session_and_without_memory,
      two_calls_are_allowed_in_one_callback)
