/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "scripts/lock_play.h"
#include "support/locks.h"
#include "support/wire.h"
#include "support/words.h"

#include <stdio.h>
#include <stdlib.h>

enum { ITEMS_MAX = 8, NAME_SIZE = 16 };

typedef struct lock_player {
  model_server server;
  lock_play_mode *mode; /* NULL: no faults */
  lk_buf *out;
  test_client clients[ITEMS_MAX];
  char client_names[ITEMS_MAX][NAME_SIZE];
  size_t nclients;
  locker lockers[ITEMS_MAX];
  char locker_names[ITEMS_MAX][NAME_SIZE];
  size_t nlockers;
} lock_player;

/* ---- names of clients and locks ------------------------------------------ */

static void abort_with(const char *what, const char *name)
{
  fprintf(stderr, "lock_play: %s: %s\n", what, name);
  abort();
}

static test_client *client_named(lock_player *player, words *w)
{
  const char *name = words_text(w, "a client");

  for (size_t i = 0; i < player->nclients; i++) {
    if (strcmp(player->client_names[i], name) == 0)
      return &player->clients[i];
  }
  abort_with("no such client", name);
  return NULL;
}

static model_link *link_of_client(lock_player *player, words *w)
{
  return client_named(player, w)->link;
}

static locker *lock_named(lock_player *player, words *w)
{
  const char *name = words_text(w, "a lock");

  for (size_t i = 0; i < player->nlockers; i++) {
    if (strcmp(player->locker_names[i], name) == 0)
      return &player->lockers[i];
  }
  abort_with("no such lock", name);
  return NULL;
}

/* ---- output -------------------------------------------------------------- */

/* The server is the player's first member. */
static lock_player *player_of_server(model_server *server)
{
  return (lock_player *)(void *)server;
}

static void on_write(model_server *server, model_link *l, const char *names)
{
  lock_player *player = player_of_server(server);

  for (size_t i = 0; i < player->nclients; i++) {
    if (player->clients[i].link == l)
      wire_say(player->out, "%s: %s\n", player->client_names[i], names);
  }
  l->log[0] = '\0';
}

/* The result of the call that has completed; 0 for an event. */
static int result_of(const locker *l, const char *what)
{
  if (strcmp(what, "acquired") == 0)
    return l->acquired;
  if (strcmp(what, "released") == 0)
    return l->released;
  return strcmp(what, "verified") == 0 ? l->verified : 0;
}

/* Called at the end of each callback of a lock; see locker.react. */
static void print_event(locker *l, const char *what)
{
  lock_player *player = l->arg;
  const char *name = player->locker_names[l - player->lockers];
  int err = result_of(l, what);

  l->events[0] = '\0';
  if (err == 0)
    wire_say(player->out, "%s: %s\n", name, what);
  else
    wire_say(player->out, "%s: not %s: %s\n", name, what, lk_error_name(err));
}

/* Prints the error with which a call has returned, if it is one. */
static void print_refusal(lock_player *player, int err)
{
  if (err != 0)
    wire_say(player->out, "refused %s\n", lk_error_name(err));
}

/* ---- inputs ------------------------------------------------------------ */

static void do_client(lock_player *player, words *w)
{
  lk_lease_config c = {.size = sizeof c};
  test_client *p = &player->clients[player->nclients];

  if (player->nclients == ITEMS_MAX)
    abort_with("too many", "clients");
  snprintf(player->client_names[player->nclients++], NAME_SIZE, "%s",
           words_text(w, "a name"));
  if (words_are(w, "sync"))
    c.assurance = LK_ASSURE_SYNC;
  else if (words_are(w, "ping"))
    c.assurance = LK_ASSURE_PING;
  failing_mem_init(&p->mem);
  p->mem.fail_at = player->mode == NULL ? 0 : player->mode->fail_at;
  if (!test_client_try_init(p, &player->server, &c))
    return;
  if (player->mode != NULL && player->mode->cut)
    p->link->allow = player->mode->at;
}

static void do_lock(lock_player *player, words *w)
{
  lk_lock_config c = {.size = sizeof c};
  locker *l = &player->lockers[player->nlockers];

  if (player->nlockers == ITEMS_MAX)
    abort_with("too many", "locks");
  snprintf(player->locker_names[player->nlockers++], NAME_SIZE, "%s",
           words_text(w, "a name"));
  test_client *p = client_named(player, w);

  c.unsure_when_suspended = words_are(w, "unsure-when-suspended");
  c.fail_on_expiry = words_are(w, "fail-on-expiry");
  if (p->link != NULL)
    (void)locker_try_init(l, p, &c);
  l->react = print_event;
  l->arg = player;
}

enum { FOREVER = -1 };

static void do_acquire(lock_player *player, words *w)
{
  locker *l = lock_named(player, w);
  int64_t timeout_ms = words_left(w) ? words_number(w, "a timeout") : FOREVER;

  if (l->lock != NULL)
    print_refusal(player, locker_acquire(l, timeout_ms));
}

static void do_try(lock_player *player, words *w)
{
  locker *l = lock_named(player, w);

  if (l->lock != NULL)
    print_refusal(player, locker_try(l));
}

static void do_release(lock_player *player, words *w)
{
  locker *l = lock_named(player, w);

  if (l->lock != NULL)
    print_refusal(player, lk_lock_release(l->lock, NULL, NULL));
}

/* Like do_release(), but prints when the release has completed. */
static void do_release_wait(lock_player *player, words *w)
{
  locker *l = lock_named(player, w);

  if (l->lock != NULL)
    print_refusal(player, locker_try_release(l));
}

static void do_verify(lock_player *player, words *w)
{
  locker *l = lock_named(player, w);

  if (l->lock != NULL)
    print_refusal(player, locker_verify(l));
}

static void do_cancel(lock_player *player, words *w)
{
  locker *l = lock_named(player, w);

  if (l->lock != NULL)
    lk_lock_cancel(l->lock);
}

static void do_free(lock_player *player, words *w)
{
  locker_free(lock_named(player, w));
}

static void do_run(lock_player *player, words *w)
{
  model_run(&player->server, words_number(w, "milliseconds"));
}

static void do_drop(lock_player *player, words *w)
{
  model_link *l = link_of_client(player, w);

  if (l != NULL && l->up)
    model_drop(l);
}

static void do_down(lock_player *player, words *w)
{
  (void)w;
  player->server.down = true;
}

static void do_up(lock_player *player, words *w)
{
  (void)w;
  player->server.down = false;
}

static void do_expire(lock_player *player, words *w)
{
  const model_link *l = link_of_client(player, w);

  if (l != NULL)
    model_expire(&player->server, l->last_session);
}

static void do_freeze(lock_player *player, words *w)
{
  model_link *l = link_of_client(player, w);

  if (l != NULL)
    l->frozen = true;
}

static void do_thaw(lock_player *player, words *w)
{
  model_link *l = link_of_client(player, w);

  if (l != NULL)
    l->frozen = false;
}

/* cut CLIENT N before|after: break its connection at its N-th request from now,
   before or after the server executes it */
static void do_cut(lock_player *player, words *w)
{
  model_link *l = link_of_client(player, w);
  int64_t n = words_number(w, "which request");
  bool after = words_are(w, "after");

  if (!after && !words_are(w, "before"))
    abort_with("before or", "after");
  if (l == NULL)
    return;
  l->cut_at = l->requests + (unsigned)n;
  l->cut_after = after;
}

/* answer CLIENT N ERROR: reply to its N-th request from now with ERROR, without
   executing it */
static void do_answer(lock_player *player, words *w)
{
  model_link *l = link_of_client(player, w);
  int64_t n = words_number(w, "which request");
  int err = words_error(w);

  if (l == NULL)
    return;
  l->answer_at = l->requests + (unsigned)n;
  l->answer_err = err;
}

static void do_create(lock_player *player, words *w)
{
  model_create(&player->server, words_text(w, "a path"));
}

static void do_delete(lock_player *player, words *w)
{
  model_delete(&player->server, words_text(w, "a path"));
}

/* Takes the name of a lock. Returns the path of its node; NULL: it has none, or
   the node is deleted. */
static const char *take_lock_node(lock_player *player, words *w)
{
  const locker *l = lock_named(player, w);
  const char *node = l->lock == NULL ? NULL : lk_lock_node(l->lock);

  return node != NULL && model_node(&player->server, node) != NULL ? node
                                                                   : NULL;
}

static void do_delete_node(lock_player *player, words *w)
{
  const char *node = take_lock_node(player, w);

  if (node != NULL)
    model_delete(&player->server, node);
}

static void do_set_node(lock_player *player, words *w)
{
  const char *node = take_lock_node(player, w);

  if (node != NULL)
    model_set(&player->server, node, words_text(w, "data"));
}

enum { NO_PERMISSION = 0 };

static int32_t take_perms(words *w)
{
  if (words_are(w, "read"))
    return LK_PERM_READ;
  if (words_are(w, "create"))
    return LK_PERM_CREATE;
  return words_are(w, "delete") ? LK_PERM_DELETE : NO_PERMISSION;
}

static void do_deny(lock_player *player, words *w)
{
  const char *path = words_text(w, "a path");

  model_deny(&player->server, path, take_perms(w));
}

static void do_deny_node(lock_player *player, words *w)
{
  const char *node = take_lock_node(player, w);

  if (node != NULL)
    model_deny(&player->server, node, take_perms(w));
}

static void do_counter(lock_player *player, words *w)
{
  const char *path = words_text(w, "a path");

  model_counter(&player->server, path, (int32_t)words_number(w, "a number"));
}

static const struct {
  const char *name;
  void (*run)(lock_player *player, words *w);
} inputs[] = {
    {"client", do_client},             /* NAME [sync|ping] */
    {"lock", do_lock},                 /* NAME CLIENT [unsure-when-suspended]
                                          [fail-on-expiry] */
    {"acquire", do_acquire},           /* LOCK [TIMEOUT_MS] */
    {"try", do_try},                   /* LOCK */
    {"release", do_release},           /* LOCK */
    {"release-wait", do_release_wait}, /* LOCK */
    {"verify", do_verify},             /* LOCK */
    {"cancel", do_cancel},             /* LOCK */
    {"free", do_free},                 /* LOCK */
    {"run", do_run},                   /* MS */
    {"drop", do_drop},                 /* CLIENT */
    {"down", do_down},
    {"up", do_up},
    {"expire", do_expire},
    {"freeze", do_freeze},
    {"thaw", do_thaw},
    {"cut", do_cut},
    {"answer", do_answer},
    {"create", do_create}, /* PATH */
    {"delete", do_delete},
    {"delete-node", do_delete_node}, /* LOCK */
    {"set-node", do_set_node},       /* LOCK DATA */
    {"deny", do_deny},               /* PATH [read|create|delete] */
    {"deny-node", do_deny_node},
    {"counter", do_counter}, /* PATH N */
};

/* ---- play -------------------------------------------------------------- */

static void run_input(lock_player *player, const char *line, size_t len)
{
  words w;

  words_cut(&w, line, len);
  const char *name = words_text(&w, "an input");

  for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
    if (strcmp(inputs[i].name, name) == 0) {
      inputs[i].run(player, &w);
      return;
    }
  }
  abort_with("no such input", name);
}

/* Runs clients and server. With mode->cut, each connection breaks once, when
   mode->at bytes have arrived. */
static void settle(lock_player *player)
{
  model_turn(&player->server);
  for (size_t i = 0; i < player->nclients; i++) {
    model_link *l = player->clients[i].link;

    if (l == NULL || l->allow > 0)
      continue; /* further bytes may arrive */
    player->mode->happened = true;
    l->allow = SIZE_MAX;
    if (l->up)
      model_drop(l);
  }
  model_turn(&player->server);
}

static void clean_up(lock_player *player)
{
  player->server.down = false;
  for (size_t i = 0; i < player->nclients; i++) {
    test_client *p = &player->clients[i];

    if (player->mode != NULL && player->mode->fail_at > 0 &&
        p->mem.count >= player->mode->fail_at)
      player->mode->happened = true;
    p->mem.fail_at = 0;
    if (p->link != NULL) {
      p->link->frozen = false;
      p->link->allow = SIZE_MAX;
    }
  }
  for (size_t i = 0; i < player->nlockers; i++) {
    player->lockers[i].react = NULL;
    locker_free(&player->lockers[i]);
  }
  model_run(&player->server, T);
  if (model_ephemeral(&player->server) != NULL)
    abort_with("a node is left", model_ephemeral(&player->server));
  for (size_t i = 0; i < player->nclients; i++)
    test_client_free(&player->clients[i]);
  model_done(&player->server);
}

void lock_play(const char *text, lock_play_mode *mode, lk_buf *out)
{
  lock_player *player = calloc(1, sizeof *player);

  if (player == NULL)
    abort();
  model_init(&player->server);
  player->server.wrote = on_write;
  player->mode = mode;
  player->out = out;
  while (*text != '\0') {
    size_t len = strcspn(text, "\n");
    bool is_input = strncmp(text, "> ", 2) == 0;

    if (is_input || *text == '#' || len == 0)
      wire_say(out, "%.*s\n", (int)len, text);
    if (is_input) {
      run_input(player, text + 2, len - 2);
      settle(player);
    }
    text += len;
    if (*text == '\n')
      text++;
  }
  player->server.wrote = NULL;
  clean_up(player);
  free(player);
}
