/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Members of groups, and rosters. Each event of a member prints "member joined
 * err=...", each report of a roster "roster err=... count=...
 * names=NAME:HEX,...".
 */

#include "live/support/worker.h"

#include <stdio.h>

/* ---- members ------------------------------------------------------------- */

static const char *event_word(lk_membership_event_type type)
{
  return type == LK_MEMBERSHIP_EVENT_NAME_TAKEN
             ? "name_taken"
             : lk_membership_event_text(type);
}

static void on_member_event(lk_membership *m, const lk_membership_event *event,
                            void *arg)
{
  const object *o = arg;

  (void)m;
  print_line(o->name, "member %s err=%s", event_word(event->type),
             error_word(event->err));
}

/* "member NAME client=... path=... id=... data=HEX persistent=1"; `id` is the
 * name of its node. */
static void execute_member(const command *cmd, object *none)
{
  lk_client *client = option_client(cmd);

  (void)none;
  if (client == NULL)
    return;
  object *o = object_new(cmd->name);
  lk_membership_config config = {.size = sizeof config,
                                 .data = option_bytes(cmd, "data"),
                                 .persistent_parents =
                                     option_flag(cmd, "persistent"),
                                 .on_event = on_member_event,
                                 .arg = o};
  int err = lk_membership_new(&o->member, client, option_path(cmd),
                              option(cmd, "id"), &config);

  if (err != 0)
    object_forget(o);
  report_made(cmd, err);
}

void object_free_member(object *o)
{
  lk_membership_free(o->member);
  object_forget(o);
}

static void execute_join(const command *cmd, object *o)
{
  report_made(cmd, lk_membership_join(o->member));
}

static void execute_leave(const command *cmd, object *o)
{
  lk_membership_leave(o->member);
  report_made(cmd, 0);
}

static void execute_data(const command *cmd, object *o)
{
  report_made(cmd,
              lk_membership_set_data(o->member, option_bytes(cmd, "data")));
}

/* ---- rosters ------------------------------------------------------------- */

static void on_roster(lk_roster *r, int err, const lk_roster_entry *entries,
                      size_t count, void *arg)
{
  const object *o = arg;
  char text[4096] = "";
  size_t at = 0;

  (void)r;
  for (size_t i = 0; i < count && at < sizeof text; i++)
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%.*s:%s",
                           i == 0 ? "" : ",", (int)entries[i].name.len,
                           (const char *)entries[i].name.at,
                           hex(entries[i].data));
  print_line(o->name, "roster err=%s count=%zu names=%s", error_word(err),
             count, text);
}

/* "roster NAME client=... path=..."; with layout=N the roster of an election.
 */
static void execute_roster(const command *cmd, object *none)
{
  lk_client *client = option_client(cmd);

  (void)none;
  if (client == NULL)
    return;
  object *o = object_new(cmd->name);
  lk_roster_config config = {
      .size = sizeof config,
      .election = option(cmd, "layout") != NULL,
      .layout = (lk_layout)option_number(cmd, "layout", 0)};
  int err = lk_roster_subscribe(&o->roster, client, option_path(cmd), &config,
                                on_roster, o);

  if (err != 0)
    object_forget(o);
  report_made(cmd, err);
}

void object_free_roster(object *o)
{
  lk_roster_free(o->roster);
  object_forget(o);
}

const verb member_verbs[] = {{"member", execute_member}, {"join", execute_join},
                             {"leave", execute_leave},   {"data", execute_data},
                             {"roster", execute_roster}, {NULL, NULL}};
