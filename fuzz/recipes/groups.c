/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "world.h"

#include <latchkey/member.h>
#include <latchkey/roster.h>

/* Members, rosters and subscriptions. */

enum { MEMBERS = 2, ROSTERS = 2, SUBSCRIPTIONS = 3 };

typedef struct group_member {
  lk_membership *membership;
  bool joined;
} group_member;

static group_member members[MEMBERS];
static lk_roster *rosters[ROSTERS];
static lk_subscription *subscriptions[SUBSCRIPTIONS];

static void on_member_event(lk_membership *m, const lk_membership_event *e,
                            void *arg)
{
  group_member *member = arg;

  (void)m;
  switch (e->type) {
  case LK_MEMBERSHIP_EVENT_JOINED:
    must(!member->joined);
    member->joined = true;
    break;
  case LK_MEMBERSHIP_EVENT_LEFT:
    must(member->joined);
    member->joined = false;
    break;
  case LK_MEMBERSHIP_EVENT_NAME_TAKEN: must(!member->joined); break;
  case LK_MEMBERSHIP_EVENT_RETRYING:
  case LK_MEMBERSHIP_EVENT_ENDED: must(e->err != 0); break;
  }
  react();
}

void do_member(void)
{
  unsigned what = take();
  group_member *member = &members[what / 8 % MEMBERS];
  lk_membership_config config = {
      .size = sizeof config, .on_event = on_member_event, .arg = member};

  if (member->membership == NULL) {
    if (client() != NULL)
      (void)lk_membership_new(&member->membership, client(), take_path(),
                              member == members ? "m" : NULL, &config);
    return;
  }
  lk_membership *m = member->membership;

  switch (what % 8) {
  case 0:
  case 1:
  case 2:
  case 3: (void)lk_membership_join(m); break;
  case 4: lk_membership_leave(m); break;
  case 5:
  case 6: (void)lk_membership_set_data(m, take_bytes(&w.in)); break;
  default: *member = (group_member){0}; lk_membership_free(m);
  }
}

static void check_entries(const lk_roster_entry *entries, size_t count)
{
  for (size_t i = 0; i < count; i++)
    must(entries[i].name.len > 0 &&
         (entries[i].err == 0) == (entries[i].stat != NULL));
  for (size_t i = 1; i < count; i++) {
    lk_bytes a = entries[i - 1].name, b = entries[i].name;
    int order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);

    must(order < 0 || (order == 0 && a.len < b.len));
  }
}

static void on_roster(lk_roster *r, int err, const lk_roster_entry *entries,
                      size_t count, void *arg)
{
  (void)r;
  (void)arg;
  must(err == 0 || count == 0);
  check_entries(entries, count);
  react();
}

static void on_election_roster(lk_roster *r, int err,
                               const lk_roster_entry *entries, size_t count,
                               void *arg)
{
  (void)r;
  (void)arg;
  must(err == 0 || count == 0);
  for (size_t i = 1; i < count; i++)
    must(entries[i - 1].number <= entries[i].number);
  react();
}

void do_roster(void)
{
  unsigned what = take();
  lk_roster **roster = &rosters[what % ROSTERS];
  lk_roster_config config = {.size = sizeof config,
                             .election = what / 2 % 2 == 1,
                             .layout = (lk_layout)(what / 4 % 5)};
  lk_roster *old = *roster;

  *roster = NULL;
  if (old != NULL)
    lk_roster_free(old);
  else if (client() != NULL)
    (void)lk_roster_subscribe(roster, client(), take_path(), &config,
                              config.election ? on_election_roster : on_roster,
                              NULL);
}

static void on_roster_read(lk_client *c, int err,
                           const lk_roster_entry *entries, size_t count,
                           void *arg)
{
  (void)c;
  must(err == 0 || count == 0);
  check_entries(entries, count);
  operation_end(arg);
}

void do_read_roster(void)
{
  lk_call call = {.size = sizeof call, .timeout_ms = (int64_t)take() * 20};
  bool *operation = client() == NULL ? NULL : operation_begin();

  if (operation != NULL)
    operation_refused(operation,
                      lk_roster_get(client(), take_path(), NULL, &call,
                                    on_roster_read, operation));
}

static void on_names(lk_subscription *s, int err, const lk_bytes *names,
                     size_t count, const lk_stat *stat, void *arg)
{
  (void)s;
  (void)names;
  (void)arg;
  must(err == 0 ? stat != NULL : count == 0);
  react();
}

static void on_data(lk_subscription *s, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  (void)s;
  (void)stat;
  (void)arg;
  must((err == 0) == (data != NULL));
  react();
}

void do_subscription(void)
{
  unsigned what = take();
  lk_subscription **subscription = &subscriptions[what % SUBSCRIPTIONS];
  lk_subscription *old = *subscription;

  *subscription = NULL;
  if (old != NULL)
    lk_subscription_free(old);
  else if (client() != NULL && what & 64)
    (void)lk_subscribe_children(subscription, client(), take_path(), NULL,
                                on_names, NULL);
  else if (client() != NULL)
    (void)lk_subscribe_data(subscription, client(), take_path(), NULL, on_data,
                            NULL);
}

void groups_check(void)
{
  for (size_t i = 0; i < MEMBERS; i++) {
    const group_member *m = &members[i];

    must(m->membership == NULL ||
         lk_membership_has_joined(m->membership) == m->joined);
  }
}

void groups_free(void)
{
  for (size_t i = 0; i < MEMBERS; i++)
    lk_membership_free(members[i].membership);
  for (size_t i = 0; i < ROSTERS; i++)
    lk_roster_free(rosters[i]);
  for (size_t i = 0; i < SUBSCRIPTIONS; i++)
    lk_subscription_free(subscriptions[i]);
  memset(members, 0, sizeof members);
  memset(rosters, 0, sizeof rosters);
  memset(subscriptions, 0, sizeof subscriptions);
}
