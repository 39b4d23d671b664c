/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Publish and subscribe: one session publishes topics by creating and deleting
 * nodes. Another prints the topics at each notification. The publisher waits
 * until each step has been seen; otherwise one notification could cover several
 * steps.
 *
 *     subscribe [HOSTS]
 */

#include <ev.h>
#include <latchkey/ev.h>
#include <latchkey/latchkey.h>
#include <stdio.h>

#define TOPICS "/news"

static const struct {
  bool create;
  const char *path;
} steps[] = {{true, TOPICS},
             {true, TOPICS "/sport"},
             {true, TOPICS "/weather"},
             {false, TOPICS "/sport"},
             {false, TOPICS "/weather"},
             {false, TOPICS}};

static lk_client *publisher, *reader;
static lk_subscription *subscription;
static size_t taken;
static bool failed;

static void leave(void)
{
  lk_subscription_free(subscription);
  subscription = NULL;
  lk_client_close(publisher, NULL, NULL);
  lk_client_close(reader, NULL, NULL);
}

static void fail(const char *what, int err)
{
  fprintf(stderr, "%s: %s\n", what, lk_error_text(err));
  failed = true;
  leave();
}

static void on_deleted(lk_client *c, int err, void *path)
{
  (void)c;
  if (err != 0)
    fail(path, err);
}

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  (void)path;
  (void)stat;
  on_deleted(c, err, arg);
}

static void publish(void)
{
  const char *path = steps[taken].path;
  void *name = (void *)(uintptr_t)path;
  int err = steps[taken++].create
                ? lk_create(publisher, path, lk_text(""), NULL, LK_PERSISTENT,
                            NULL, on_created, name)
                : lk_delete(publisher, path, -1, NULL, on_deleted, name);

  if (err != 0)
    fail(path, err);
}

static void print(const lk_bytes *names, size_t count)
{
  printf("%s has", TOPICS);
  for (size_t i = 0; i < count; i++)
    printf(" " LK_FMT, LK_ARG(names[i]));
  printf("%s\n", count == 0 ? " no topics" : "");
}

static void on_topics(lk_subscription *s, int err, const lk_bytes *names,
                      size_t count, const lk_stat *stat, void *arg)
{
  (void)s;
  (void)stat;
  (void)arg;
  if (err == 0)
    print(names, count);
  else
    printf("%s: %s\n", TOPICS, lk_error_text(err));
  if (err != 0 && err != LK_ERR_NO_NODE)
    return; /* the client retries */
  if (taken < sizeof steps / sizeof steps[0])
    publish();
  else
    leave();
}

int main(int argc, char **argv)
{
  struct ev_loop *loop = ev_default_loop(0);
  lk_client_config config = {.size = sizeof config,
                             .hosts = argc > 1 ? argv[1] : "127.0.0.1:2181"};
  lk_ev *ev = NULL;
  int err = lk_ev_new(&ev, loop, NULL);

  if (err == 0)
    err = lk_ev_client_new(&publisher, ev, &config);
  if (err == 0)
    err = lk_ev_client_new(&reader, ev, &config);
  if (err == 0)
    err = lk_subscribe_children(&subscription, reader, TOPICS, NULL, on_topics,
                                NULL);
  if (err == 0)
    ev_run(loop, 0); /* until both clients are closed */
  else
    fprintf(stderr, "cannot begin: %s\n", lk_error_text(err));
  lk_ev_free(ev); /* frees the clients as well */
  return err != 0 || failed;
}
