/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Watches of all kinds, on the same node and above it, over a connection that
 * breaks, with changes in between. In an ensemble the next one is to another
 * server.
 */

#include "live/client/operations.h"

#include <stdio.h>
#include <string.h>

/* ---- a watch for each request that sets one --------------------------------
 */

static int told;
static lk_event_type told_type;
static char told_path[256];

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  (void)c;
  (void)w;
  (void)arg;
  told++;
  told_type = event->type;
  snprintf(told_path, sizeof told_path, "%s", (const char *)event->path.at);
}

static void change(const char *node, lk_event_type type)
{
  if (type == LK_EVENT_CHANGED)
    ck_assert_int_eq(set(there, beyond(node, ""), lk_text("new"), -1), 0);
  else
    ck_assert_int_eq(create(there, beyond(node, "/born"), "", 0), 0);
  ck_assert_int_eq(sync_with(here, "/"), 0);
}

/* Whose request has failed sees nothing, whoever has it on the server. */
START_TEST(a_watch_stands_when_its_request_has_ended_well)
{
  const operation *o = operation_of(_i);
  lk_call call = {.size = sizeof call, .on_event = on_event};

  if (o->watches == 0)
    return;
  place_enter(with_chroot(_i));
  told = 0;
  furnish("/a");
  furnish("/b");
  wire_break_at(near, o->op, true);
  ck_assert_int_eq(do_ask(o, at("/a", ""), &call), LK_ERR_CONNECTION_LOSS);
  wait_for_state(here, LK_STATE_CONNECTED);
  change("/a", (lk_event_type)o->watches);
  ck_assert_int_eq(told, 0);
  call.repeat = true;
  wire_break_at(near, o->op, true);
  ck_assert_int_eq(do_ask(o, at("/b", ""), &call), 0);
  change("/b", (lk_event_type)o->watches);
  ck_assert_int_eq(told, 1);
  ck_assert_int_eq((int)told_type, o->watches);
  ck_assert_str_eq(told_path, at("/b", ""));
  place_leave();
}
END_TEST

/* What is cancelled is not set again, also where the server has not heard. */
START_TEST(a_cancelled_watch_is_gone_wherever_it_breaks)
{
  const bool answered = _i >= 2;
  lk_watch *w;
  lk_call call = {.size = sizeof call, .on_event = on_event, .watch = &w};

  place_enter(_i % 2 == 1);
  told = 0;
  furnish("/a");
  ck_assert_int_eq(get(here, at("/a", ""), &call), 0);
  wire_break_at(near, 18, answered);
  lk_watch_cancel(here, w, true);
  wait_for_state(here, LK_STATE_SUSPENDED);
  ck_assert(wire_has_broken(near));
  wait_for_state(here, LK_STATE_CONNECTED);
  change("/a", LK_EVENT_CHANGED);
  ck_assert_int_eq(told, 0);
  place_leave();
}
END_TEST

/* ---- all kinds beside each other --------------------------------------------
 */

/* Which of those that stay is about a node. */
enum stay { NONE, NODE, TREE, ABOVE, NSTAYS };

/* What happens to a node while nobody looks. */
enum deed { NOTHING, WRITTEN, CHILD_BORN, DELETED, MADE_ANEW, CREATED, NDEEDS };

enum shot { GET, EXISTS, CHILDREN, NSHOTS };

typedef struct diary {
  lk_watch *watch;
  char text[512];
} diary;

static diary shots[NSTAYS][NDEEDS][NSHOTS];
static diary stays[NSTAYS][NDEEDS]; /* of ABOVE the first one */

static void write_down(lk_client *c, lk_watch *w, const lk_event *event,
                       void *arg)
{
  static const char *const names[] = {
      [LK_EVENT_ENDED] = "ended",       [LK_EVENT_CREATED] = "created",
      [LK_EVENT_DELETED] = "deleted",   [LK_EVENT_CHANGED] = "changed",
      [LK_EVENT_CHILDREN] = "children", [LK_EVENT_REREGISTERED] = "resumed"};
  const char *start = at("", "");
  diary *d = arg;
  size_t len = strlen(d->text);

  (void)c;
  ck_assert_ptr_eq(w, d->watch);
  snprintf(d->text + len, sizeof d->text - len, "%s%s %s", len == 0 ? "" : ", ",
           names[event->type], (const char *)event->path.at + strlen(start));
}

static lk_call into(diary *d)
{
  return (lk_call){.size = sizeof(lk_call),
                   .on_event = write_down,
                   .watch_arg = d,
                   .watch = &d->watch};
}

static const char *node_of(int stay, int deed)
{
  static char text[4][32];
  static unsigned turn;
  char *out = text[turn++ % 4];

  snprintf(out, sizeof text[0], "/%d/%d", stay, deed);
  return out;
}

static int add(const char *path, lk_watch_mode mode, diary *d)
{
  lk_call call = into(d);

  memset(&said, 0, sizeof said);
  return ended(lk_add_watch(here, path, mode, &call, on_ended, NULL));
}

/* One that stays is there before those of one shot, or comes after them. */
static void set_stay(int stay, int deed)
{
  const char *node = at(node_of(stay, deed), "");

  if (stay == NODE)
    ck_assert_int_eq(add(node, LK_WATCH_PERSISTENT, &stays[stay][deed]), 0);
  else if (stay == TREE)
    ck_assert_int_eq(add(node, LK_WATCH_RECURSIVE, &stays[stay][deed]), 0);
}

static void set_shots(int stay, int deed)
{
  diary *d = shots[stay][deed];
  const char *node = at(node_of(stay, deed), "");
  lk_call calls[] = {into(&d[GET]), into(&d[EXISTS]), into(&d[CHILDREN])};
  const int missing = deed == CREATED ? LK_ERR_NO_NODE : 0;

  ck_assert_int_eq(exists(here, node, &calls[EXISTS]), missing);
  if (missing != 0)
    return;
  ck_assert_int_eq(get(here, node, &calls[GET]), 0);
  ck_assert_int_eq(children(here, node, &calls[CHILDREN]), 0);
}

static void prepare(bool stays_first)
{
  char directory[16];

  for (int stay = 0; stay < NSTAYS; stay++) {
    snprintf(directory, sizeof directory, "/%d", stay);
    ck_assert_int_eq(create(there, beyond(directory, ""), "", 0), 0);
    for (int deed = 0; deed < CREATED; deed++)
      ck_assert_int_eq(create(there, beyond(node_of(stay, deed), ""), "", 0),
                       0);
    ck_assert_int_eq(sync_with(here, "/"), 0);
    if (stay == ABOVE)
      ck_assert_int_eq(
          add(at(directory, ""), LK_WATCH_RECURSIVE, &stays[stay][0]), 0);
    for (int deed = 0; deed < NDEEDS; deed++) {
      if (stays_first)
        set_stay(stay, deed);
      set_shots(stay, deed);
      if (!stays_first)
        set_stay(stay, deed);
    }
  }
  ck_assert_int_eq(sync_with(here, "/"), 0);
}

static void happen(int stay, int deed)
{
  const char *node = beyond(node_of(stay, deed), "");

  if (deed == WRITTEN)
    ck_assert_int_eq(set(there, node, lk_text("1"), -1), 0);
  if (deed == CHILD_BORN)
    ck_assert_int_eq(create(there, beyond(node_of(stay, deed), "/x"), "", 0),
                     0);
  if (deed == DELETED || deed == MADE_ANEW)
    ck_assert_int_eq(erase(there, node, -1), 0);
  if (deed == MADE_ANEW || deed == CREATED)
    ck_assert_int_eq(create(there, node, "", 0), 0);
}

/* What a watch of one shot is told of what it has missed: what the node looks
 * like now, compared with what was seen. */
static const char *missed(int deed, int shot)
{
  static const char *const of[NDEEDS][NSHOTS] = {
      [WRITTEN] = {"changed", "changed", NULL},
      [CHILD_BORN] = {NULL, NULL, "children"},
      [DELETED] = {"deleted", "deleted", "deleted"},
      [MADE_ANEW] = {"changed", "changed", "children"},
      [CREATED] = {NULL, "created", NULL},
  };

  return of[deed][shot];
}

/* What it is told when something happens then. */
static const char *later(int deed, int shot)
{
  if (missed(deed, shot) != NULL || (deed == CREATED && shot != EXISTS))
    return NULL; /* it was, or was never set */
  return shot == CHILDREN ? "children" : "changed";
}

static void assert_text(const char *text, const char *expected, int stay,
                        int deed, int shot)
{
  ck_assert_msg(strcmp(text, expected) == 0,
                "beside %d, deed %d, watch %d: \"%s\", not \"%s\"", stay, deed,
                shot, text, expected);
}

static void assert_shots(const char *(*what)(int deed, int shot))
{
  char expected[128];

  for (int n = 0; n < NSTAYS * NDEEDS * NSHOTS; n++) {
    int shot = n % NSHOTS, deed = n / NSHOTS % NDEEDS;
    int stay = n / NSHOTS / NDEEDS;

    expected[0] = '\0';
    if (what(deed, shot) != NULL)
      snprintf(expected, sizeof expected, "%s %s", what(deed, shot),
               node_of(stay, deed));
    assert_text(shots[stay][deed][shot].text, expected, stay, deed, shot);
  }
}

/* Whether one of one shot in a directory has missed this. */
static bool was_missed(const char *text, int stay)
{
  char line[128];

  for (int n = 0; n < NDEEDS * NSHOTS; n++) {
    const char *what = missed(n / NSHOTS, n % NSHOTS);

    snprintf(line, sizeof line, "%s %s", what == NULL ? "" : what,
             node_of(stay, n / NSHOTS));
    if (strcmp(line, text) == 0)
      return true;
  }
  return false;
}

/* It is told that it is back, and then perhaps what the others have missed. */
static void assert_resumed(const diary *d, const char *path, int stay)
{
  char text[sizeof d->text], *rest, expected[64];

  snprintf(text, sizeof text, "%s", d->text);
  snprintf(expected, sizeof expected, "resumed %s", path);
  ck_assert_str_eq(strtok_r(text, ",", &rest), expected);
  for (char *at = strtok_r(NULL, ",", &rest); at != NULL;
       at = strtok_r(NULL, ",", &rest))
    ck_assert_msg(was_missed(at + 1, stay), "%s: %s", path, d->text);
}

static void assert_all_resumed(void)
{
  for (int deed = 0; deed < NDEEDS; deed++) {
    assert_resumed(&stays[NODE][deed], node_of(NODE, deed), NODE);
    assert_resumed(&stays[TREE][deed], node_of(TREE, deed), TREE);
  }
  assert_resumed(&stays[ABOVE][0], "/3", ABOVE);
}

/* What touch_all() does to a node, as those that stay are told. */
static void put_touched(char *out, size_t size, int stay, int deed)
{
  const char *node = node_of(stay, deed);

  if (deed == DELETED)
    snprintf(out, size, "created %s", node);
  else if (stay == NODE)
    snprintf(out, size, "changed %s, children %s", node, node);
  else
    snprintf(out, size, "changed %s, created %s/late", node, node);
}

static void assert_all_touched(void)
{
  char expected[1024], all[1024] = "";

  for (int deed = 0; deed < NDEEDS; deed++) {
    size_t len = strlen(all);

    for (int stay = NODE; stay <= TREE; stay++) {
      put_touched(expected, sizeof expected, stay, deed);
      assert_text(stays[stay][deed].text, expected, stay, deed, NSHOTS);
    }
    len += (size_t)snprintf(all + len, sizeof all - len, "%s",
                            deed == 0 ? "" : ", ");
    put_touched(all + len, sizeof all - len, ABOVE, deed);
  }
  assert_text(stays[ABOVE][0].text, all, ABOVE, 0, NSHOTS);
}

static void forget(void)
{
  for (int stay = 0; stay < NSTAYS; stay++) {
    for (int deed = 0; deed < NDEEDS; deed++) {
      stays[stay][deed].text[0] = '\0';
      for (int shot = 0; shot < NSHOTS; shot++)
        shots[stay][deed][shot].text[0] = '\0';
    }
  }
}

/* Whatever has not been told is still watched. */
static void touch_all(void)
{
  for (int stay = 0; stay < NSTAYS; stay++) {
    for (int deed = 0; deed < NDEEDS; deed++) {
      const char *node = node_of(stay, deed);

      if (deed == DELETED) {
        ck_assert_int_eq(create(there, beyond(node, ""), "", 0), 0);
        continue;
      }
      ck_assert_int_eq(set(there, beyond(node, ""), lk_text("2"), -1), 0);
      ck_assert_int_eq(create(there, beyond(node, "/late"), "", 0), 0);
    }
  }
}

START_TEST(what_was_missed_is_told_as_documented)
{
  answer waiting = {0};

  place_enter(_i % 2 == 1);
  forget();
  prepare(_i >= 2);
  wire_break(near);
  wait_for_state(here, LK_STATE_SUSPENDED);
  for (int stay = 0; stay < NSTAYS; stay++) {
    for (int deed = 0; deed < NDEEDS; deed++)
      happen(stay, deed);
  }
  ck_assert_int_eq(lk_get(here, at("", "/0"), NULL, on_get, &waiting), 0);
  wire_mend(near);
  wait_until(&waiting.done);
  /* all that was missed is told before an answer that shows it */
  assert_shots(missed);
  ck_assert_int_eq(sync_with(here, "/"), 0);
  assert_shots(missed);
  assert_all_resumed();
  forget();
  touch_all();
  ck_assert_int_eq(sync_with(here, "/"), 0);
  assert_shots(later);
  assert_all_touched();
  place_leave();
}
END_TEST

TCase *watch_over_tests(bool ensemble)
{
  TCase *t = tcase_create("watches");

  tcase_set_timeout(t, 0);
  tcase_add_loop_test(t, a_watch_stands_when_its_request_has_ended_well, 0,
                      2 * (int)operations_in(ensemble));
  tcase_add_loop_test(t, a_cancelled_watch_is_gone_wherever_it_breaks, 0, 4);
  tcase_add_loop_test(t, what_was_missed_is_told_as_documented, 0, 4);
  return t;
}
