/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * The recipes with a server that lies. The input is a program: three bytes of
 * options, then actions. An action is a call of the API, an act of another
 * client, passing time, a broken connection, or a lie (liar.h): the next
 * replies are changed. Some calls are made in the next callbacks. The corpus
 * depends on the order of the tables and on the number of bytes that each
 * action takes.
 *
 * With SIM_TRACE in the environment the actions, and what the server does, are
 * printed.
 *
 * Oracle: each call completes once, and not before it has returned; events
 * follow each other as the headers say; a roster has each name once, in order;
 * client and server come to rest without time passing; all memory is freed.
 */

#include "liar.h"
#include "recipes/world.h"

#include <stdio.h>

world w;

static lie next_lie;

lk_client *client(void)
{
  return w.client.link->client;
}

unsigned take(void)
{
  return take_byte(&w.in);
}

/* ---- actions ------------------------------------------------------------- */

void run(const action *table, size_t count)
{
  const action *chosen = &table[take() % count];

  if (w.trace)
    fprintf(stderr, "> %s\n", chosen->name);
  chosen->run();
}

static void do_defer(void)
{
  w.deferred = take() % 8;
}

const char *take_path(void)
{
  static const char *const paths[] = {"/q", "/q/a",   "/r",  "/g",
                                      "/s", "/q/a/b", "/g/m"};

  return paths[take() % (sizeof paths / sizeof paths[0])];
}

static void do_end_client(void)
{
  unsigned how = take();

  if (client() != NULL && how == 255)
    lk_client_free(client());
  else if (client() != NULL && how == 254)
    (void)lk_client_close(client(), NULL, NULL);
}

static void do_call(void)
{
  static const action calls[] = {
      ACTION(make),        ACTION(make_candidate), ACTION(acquire),
      ACTION(acquire),     ACTION(release),        ACTION(cancel),
      ACTION(verify),      ACTION(guarded),        ACTION(free),
      ACTION(operation),   ACTION(member),         ACTION(roster),
      ACTION(read_roster), ACTION(subscription),   ACTION(end_client)};

  run(ACTIONS(calls));
}

void react(void)
{
  if (w.deferred == 0)
    return;
  w.deferred--;
  do_call();
}

/* ---- the connection ------------------------------------------------------ */

static void do_turn(void)
{
  model_turn(&w.server);
}

static void do_wait(void)
{
  model_run(&w.server, (int64_t)take() * 20);
}

static void do_drop(void)
{
  model_drop(w.client.link);
}

static void do_down(void)
{
  w.server.down = !w.server.down;
}

static void do_freeze(void)
{
  w.client.link->frozen = !w.client.link->frozen;
}

static void do_cut(void)
{
  unsigned how = take();
  model_link *l = w.client.link;

  l->requests = 0;
  l->cut_at = 1 + how % 8;
  l->cut_after = (how & 8) != 0;
  l->cut_softly = (how & 16) != 0;
}

static void do_pieces(void)
{
  w.client.link->step = take() % 32;
}

static void do_lie(void)
{
  next_lie = take_lie(&w.in);
}

static const action actions[] = {
    ACTION(call), ACTION(call),   ACTION(call), ACTION(defer),  ACTION(act),
    ACTION(act),  ACTION(turn),   ACTION(turn), ACTION(wait),   ACTION(drop),
    ACTION(down), ACTION(freeze), ACTION(cut),  ACTION(pieces), ACTION(lie),
    ACTION(lie),  ACTION(lie)};

/* ---- one input ----------------------------------------------------------- */

static bool serve(model_link *l, lk_bytes frame)
{
  return lie_serve(&next_lie, l, frame);
}

/* Returns whether there was memory for the client. */
static bool begin(void)
{
  unsigned options = take(), failure = take(), lease = take();
  lk_lease_config config = {.size = sizeof config,
                            .assurance = (lk_assurance)(lease % 3)};

  model_init(&w.server);
  w.server.expires = options & 1;
  w.server.no_containers = (options & 2) != 0;
  w.server.no_ephemerals = (options & 4) != 0;
  w.server.serve = serve;
  failing_mem_init(&w.client.mem);
  w.client.mem.fail_at = failure < 192 ? 0 : 20 + (failure & 63) * 4;
  if (!test_client_try_init(&w.client, &w.server, &config))
    return false;
  model_create(&w.server, "/q");
  model_turn(&w.server);
  return true;
}

static void end(bool client_first)
{
  w.deferred = 0;
  if (client_first)
    lk_client_free(client());
  locks_free();
  groups_free();
  if (client() != NULL)
    model_turn(&w.server);
  test_client_free(&w.client);
  operations_check_ended();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  memset(&w, 0, sizeof w);
  next_lie = (lie){0};
  w.in = input_of(data, size);
  w.trace = getenv("SIM_TRACE") != NULL;
  if (begin()) {
    while (!input_ended(&w.in)) {
      run(ACTIONS(actions));
      locks_check();
      groups_check();
      w.client.link->log[0] = '\0';
    }
    end(size % 2 == 1);
  } else {
    test_client_free(&w.client);
  }
  model_done(&w.server);
  return 0;
}
