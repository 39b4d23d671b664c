/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "proto/engine/hosts.h"
#include "support/harness.h"
#include "support/suite.h"
#include "support/wire.h"
#include "support/words.h"

#include <stdio.h>

/* ---- the rule ----------------------------------------------------------- */

/* Where the client's server stands in the new list. */
typedef enum own_server { REMOVED = false, LISTED = true } own_server;

/* The numbers of servers before the change, after it, and in both lists. */
static lk_relocation choose(size_t before, size_t after, size_t kept,
                            own_server own, uint32_t random)
{
  lk_list_change change = {before, after, kept, own == LISTED};

  return lk__choose_relocation(&change, random);
}

START_TEST(in_a_longer_list_clients_leave_listed_servers_as_often_as_needed)
{
  /* Three servers become four: three of four clients stay, those with a random
     number below 0.75 * 2^32. */
  ck_assert_int_eq(choose(3, 4, 3, LISTED, 0), LK_RELOCATION_NONE);
  ck_assert_int_eq(choose(3, 4, 3, LISTED, 0xbfffffff), LK_RELOCATION_NONE);
  ck_assert_int_eq(choose(3, 4, 3, LISTED, 0xc0000000), LK_RELOCATION_TO_ADDED);
  ck_assert_int_eq(choose(3, 4, 3, LISTED, UINT32_MAX), LK_RELOCATION_TO_ADDED);
}
END_TEST

START_TEST(in_a_longer_list_a_removed_server_is_left_for_a_new_one)
{
  ck_assert_int_eq(choose(3, 4, 2, REMOVED, 0), LK_RELOCATION_TO_ADDED);
  ck_assert_int_eq(choose(1, 9, 0, REMOVED, UINT32_MAX),
                   LK_RELOCATION_TO_ADDED);
}
END_TEST

START_TEST(in_a_list_that_did_not_grow_a_listed_server_is_kept)
{
  ck_assert_int_eq(choose(3, 3, 3, LISTED, 0), LK_RELOCATION_NONE);
  ck_assert_int_eq(choose(3, 3, 1, LISTED, UINT32_MAX), LK_RELOCATION_NONE);
  ck_assert_int_eq(choose(3, 1, 1, LISTED, UINT32_MAX), LK_RELOCATION_NONE);
}
END_TEST

START_TEST(in_a_list_that_did_not_grow_a_removed_server_is_left_for_any)
{
  /* Servers a, b, c, d become a, b, e. A client of c or d moves to a or b with
     a probability of 2 in 6: if its random number is below 2^32 / 3. */
  ck_assert_int_eq(choose(4, 3, 2, REMOVED, 0), LK_RELOCATION_TO_KEPT);
  ck_assert_int_eq(choose(4, 3, 2, REMOVED, 0x55555555), LK_RELOCATION_TO_KEPT);
  ck_assert_int_eq(choose(4, 3, 2, REMOVED, 0x55555556),
                   LK_RELOCATION_TO_ADDED);
  /* No server is kept, or no server is new. */
  ck_assert_int_eq(choose(4, 3, 0, REMOVED, 0), LK_RELOCATION_TO_ADDED);
  ck_assert_int_eq(choose(4, 3, 3, REMOVED, UINT32_MAX), LK_RELOCATION_TO_KEPT);
  ck_assert_int_eq(choose(3, 3, 2, REMOVED, 0), LK_RELOCATION_TO_ADDED);
}
END_TEST

/* ---- where the clients are after a change ------------------------------- */

static uint64_t seed; /* of draw() */

static void draw(void *arg, void *out, size_t len)
{
  unsigned char *bytes = out;

  (void)arg;
  for (size_t i = 0; i < len; i++) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    bytes[i] = (unsigned char)(seed >> 56);
  }
}

static lk_hosts parsed(const char *text)
{
  lk_hosts h;
  const char *why;
  const bool tls = false;

  ck_assert_int_eq(lk__hosts_init(&h, &lk__mem_libc, text, tls, &why), 0);
  return h;
}

enum { CLIENTS = 12000 };

/* Have CLIENTS, which are spread evenly over the servers `before`, get the list
   `after`. Returns how many of them move. at[x]: how many are then at the
   server whose name is the letter x. */
static size_t change_list(const char *before, const char *after, size_t at[128])
{
  size_t moved = 0;

  seed = 1;
  memset(at, 0, 128 * sizeof at[0]);
  for (size_t i = 0; i < CLIENTS; i++) {
    lk_hosts h = parsed(before), fresh = parsed(after);

    h.in_turn = i % h.count;
    char old_server = lk__hosts_current(&h)->name[0];
    bool moves = lk__hosts_replace(&h, &fresh, draw, NULL);
    char new_server = lk__hosts_current(&h)->name[0];

    ck_assert(moves == (old_server != new_server));
    if (moves)
      moved++;
    at[(unsigned char)new_server]++;
    lk__hosts_free(&h);
  }
  return moved;
}

START_TEST(clients_are_balanced_after_the_list_changes)
{
  static const struct {
    const char *before, *after;
    double moved; /* the part of the clients that must move, the smallest for
                     which the servers have equally many clients */
  } changes[] = {
      {"a,b,c", "a,b,c,d", 1. / 4},   {"a,b,c", "a,b,c,d,e", 2. / 5},
      {"a,b,c", "b,c,d,e", 1. / 2},   {"a", "b,c", 1},
      {"a,b,c,d", "a,b,c", 1. / 4},   {"a,b,c,d", "a,b,e", 1. / 2},
      {"a,b,c,d,e", "a,e,f", 3. / 5}, {"a,b,c", "a,b,d", 1. / 3},
      {"a,b,c", "c,b,a", 0},          {"a,b,c,d,e,f", "b", 5. / 6},
      {"a,b,c", "d,e,f", 1},
  };

  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    const char *after = changes[i].after;
    size_t at[128], count = (strlen(after) + 1) / 2; /* of servers */
    double moved = (double)change_list(changes[i].before, after, at);
    double share = (double)CLIENTS / (double)count;

    ck_assert_double_eq_tol(moved / CLIENTS, changes[i].moved, .015);
    for (const char *s = after; *s != '\0'; s++)
      if (*s != ',')
        ck_assert_double_eq_tol((double)at[(unsigned char)*s] / share, 1, .05);
  }
}
END_TEST

START_TEST(kept_server_keeps_its_address_and_a_new_one_starts_with_the_first)
{
  lk_hosts h = parsed("a,b"), fresh = parsed("b,a");

  h.in_turn = 1;       /* b */
  h.address_index = 2; /* the last of three */
  h.address_count = 3;
  h.address_total = 3;
  h.tried_count = 1;
  ck_assert(!lk__hosts_replace(&h, &fresh, draw, NULL));
  ck_assert_str_eq(lk__hosts_current(&h)->name, "b");
  ck_assert_uint_eq(h.address_index, 2);
  ck_assert_uint_eq(h.address_count, 3);
  ck_assert_uint_eq(h.tried_count, 0);
  fresh = parsed("c");
  ck_assert(lk__hosts_replace(&h, &fresh, draw, NULL));
  ck_assert_str_eq(lk__hosts_current(&h)->name, "c");
  ck_assert_uint_eq(h.address_index, 0);
  ck_assert_uint_eq(h.address_count, 0);
  lk__hosts_free(&h);
}
END_TEST

/* The client leaves the servers that are kept, so it tries all new servers
   before them. */
START_TEST(remaining_new_servers_follow_the_chosen_one)
{
  for (seed = 1; seed < 200; seed++) {
    lk_hosts h = parsed("a,b,c"), fresh = parsed("b,d,c,e,f");

    ck_assert(lk__hosts_replace(&h, &fresh, draw, NULL));
    for (int i = 0; i < 3; i++) {
      ck_assert_int_ge(lk__hosts_current(&h)->name[0], 'd');
      lk__hosts_next(&h);
    }
    lk__hosts_free(&h);
  }
}
END_TEST

START_TEST(a_port_makes_another_server_and_the_chroot_is_not_changed)
{
  lk_hosts h = parsed("a:1/root"), fresh = parsed("a:2");
  const char *chroot = h.chroot;

  ck_assert(lk__hosts_replace(&h, &fresh, draw, NULL));
  ck_assert_uint_eq(lk__hosts_current(&h)->port, 2);
  ck_assert_ptr_eq(h.chroot, chroot);
  ck_assert_str_eq(h.chroot, "/root");
  ck_assert_uint_eq(h.chroot_len, 5);
  lk__hosts_free(&h);
}
END_TEST

START_TEST(a_server_listed_twice_does_no_harm)
{
  lk_hosts h = parsed("a,b"), fresh = parsed("b,b");

  ck_assert(lk__hosts_replace(&h, &fresh, draw, NULL));
  ck_assert_str_eq(lk__hosts_current(&h)->name, "b");
  fresh = parsed("b,b,b,b");
  (void)lk__hosts_replace(&h, &fresh, draw, NULL);
  ck_assert_str_eq(lk__hosts_current(&h)->name, "b");
  fresh = parsed("c");
  ck_assert(lk__hosts_replace(&h, &fresh, draw, NULL));
  lk__hosts_free(&h);
}
END_TEST

/* ---- the client --------------------------------------------------------- */

static void set_hosts_on_reply(harness *h, const char *name, const char *event)
{
  if (strcmp(name, "g") == 0 && strcmp(event, "ok") == 0)
    ck_assert_int_eq(lk_client_set_hosts(h->client, "b"), 0);
}

static harness *new_connected_peer(void)
{
  lk_client_config config = {.size = sizeof config, .hosts = "a"};
  harness *h = calloc(1, sizeof *h);
  lk_buf b = wire_buf();

  failing_mem_init(&h->mem);
  ck_assert_int_eq(harness_init(h, &config), 0);
  harness_settle(h);
  harness_connected(h);
  wire_welcome(&b, 0x10, 30000);
  harness_receive(h, lk__buf_bytes(&b), lk__buf_len(&b));
  lk__buf_free(&b);
  return h;
}

/* Send the reply to the request g, and behind it an invalid length, so that the
   client ends the connection. */
static void reply_and_break(harness *h)
{
  static const char body[] = "\"\" stat=1";
  lk_buf b = wire_buf();
  words w;

  words_cut(&w, body, sizeof body - 1);
  size_t mark = wire_begin(&b);

  wire_header(&b, 1, 1, 0);
  words_encode(&w, &b);
  wire_end(&b, mark);
  wire_int(&b, -1);
  harness_receive(h, lk__buf_bytes(&b), lk__buf_len(&b));
  lk__buf_free(&b);
}

START_TEST(connection_lost_before_the_move_leads_to_the_chosen_server)
{
  const harness_call call = {.name = "g"};
  harness *h = new_connected_peer();

  h->react = set_hosts_on_reply;
  ck_assert_int_eq(harness_get(h, &call, "/a"), 0);
  harness_settle(h);
  reply_and_break(h);
  ck_assert_int_eq(lk_client_state(h->client), LK_STATE_SUSPENDED);
  ck_assert_str_eq(lk_client_server(h->client), "b:2181");
  ck_assert_uint_eq(h->want.attempt, 2);
  harness_done(h);
  free(h);
}
END_TEST

START_TEST(hosts_cannot_be_set_in_a_forked_child_or_to_null)
{
  harness *h = new_connected_peer();

  h->forked = true;
  ck_assert_int_eq(lk_client_set_hosts(h->client, "b"), LK_ERR_FORKED);
  h->forked = false;
  ck_assert_int_eq(lk_client_set_hosts(h->client, NULL), LK_ERR_BAD_HOSTS);
  harness_settle(h);
  ck_assert_int_eq(lk_client_state(h->client), LK_STATE_CONNECTED);
  harness_done(h);
  free(h);
}
END_TEST

SUITE("load_balancing",
      in_a_longer_list_clients_leave_listed_servers_as_often_as_needed,
      in_a_longer_list_a_removed_server_is_left_for_a_new_one,
      in_a_list_that_did_not_grow_a_listed_server_is_kept,
      in_a_list_that_did_not_grow_a_removed_server_is_left_for_any,
      clients_are_balanced_after_the_list_changes,
      kept_server_keeps_its_address_and_a_new_one_starts_with_the_first,
      remaining_new_servers_follow_the_chosen_one,
      a_port_makes_another_server_and_the_chroot_is_not_changed,
      a_server_listed_twice_does_no_harm,
      connection_lost_before_the_move_leads_to_the_chosen_server,
      hosts_cannot_be_set_in_a_forked_child_or_to_null)
