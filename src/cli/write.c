/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <latchkey/nodes.h>

#include "cli/access.h"
#include "cli/ask.h"
#include "cli/json.h"
#include "cli/nodes.h"
#include "cli/print.h"

/* No server takes more in one request. */
enum { MOST_DATA = 64 << 20 };

/* DATA, or standard input for -, or nothing. False once it has complained. */
static bool read_data(const char *word, cli_text *out)
{
  char bytes[16384];
  ssize_t n = 1;

  if (word == NULL)
    return true;
  if (strcmp(word, "-") != 0) {
    cli_text_puts(out, word);
  } else {
    while (n != 0 && out->len < MOST_DATA) {
      n = read(STDIN_FILENO, bytes, sizeof bytes);
      if (n > 0)
        cli_text_add(out, bytes, (size_t)n);
      if (n < 0 && errno != EINTR) {
        cli_say("cannot read standard input: %s", strerror(errno));
        return false;
      }
    }
  }
  if (out->failed)
    cli_say("%s", lk_error_text(LK_ERR_NO_MEMORY));
  return !out->failed;
}

/* Empty data, not ZooKeeper's null. */
static lk_bytes data_of(const cli_text *data)
{
  return lk_bytes_of(data->at == NULL ? "" : data->at, data->len);
}

static void on_done(lk_client *c, int err, void *arg)
{
  (void)c;
  cli_ask_answer(arg, err);
}

/* ---- set, delete ----------------------------------------------------------
 */

static void on_deleted(lk_client *c, int err, size_t deleted, void *arg)
{
  cli_ask *a = arg;

  if (a->options->verbose)
    cli_say("%zu nodes deleted", deleted);
  on_done(c, err, arg);
}

static void on_set(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  cli_ask *a = arg;

  (void)c;
  cli_ask_answer(a, err);
  if (err == 0 && a->options->verbose)
    cli_say("%s has version %" PRId32, a->path, stat->version);
}

int cli_set(const cli_options *o, char **operands)
{
  cli_text data = {0};
  int code = CLI_FAILED;
  cli_ask a;

  if (read_data(operands[1], &data) &&
      cli_ask_open(&a, o, "set", operands[0])) {
    lk_call call = cli_ask_call(&a, true);
    int err = lk_set_settled(a.link.client, a.path, data_of(&data),
                             o->node_version, false, &call, on_set, &a);

    code = cli_ask_close(&a, cli_ask_wait(&a, err));
  }
  cli_text_free(&data);
  return code;
}

/* As long as the servers answer. */
static int delete_tree(cli_ask *a)
{
  int err = lk_delete_deep(a->link.client, a->path, NULL, NULL, on_deleted, a);

  return cli_ask_wait(a, err);
}

static int delete_node(cli_ask *a)
{
  lk_call call = cli_ask_call(a, true);
  int err = lk_delete_settled(a->link.client, a->path, a->options->node_version,
                              false, &call, on_done, a);

  return cli_ask_wait(a, err);
}

int cli_delete(const cli_options *o, char **operands)
{
  cli_ask a;

  if (o->recursive && o->node_version != -1) {
    cli_say("delete: -V does not go with -r");
    return CLI_FAILED;
  }
  if (!cli_ask_open(&a, o, "delete", operands[0]))
    return CLI_FAILED;
  return cli_ask_close(&a, o->recursive ? delete_tree(&a) : delete_node(&a));
}

/* ---- create ----------------------------------------------------------------
 */

static void on_created(lk_client *c, int err, const char *path,
                       const lk_stat *stat, void *arg)
{
  cli_ask *a = arg;
  cli_json j = {.out = &a->out};

  (void)c;
  (void)stat;
  cli_ask_answer(a, err);
  if (err != 0)
    return;
  if (a->options->json) {
    cli_json_open(&j, NULL, '{');
    cli_json_text(&j, "path", lk_text(path));
    cli_json_close(&j, '}');
  } else {
    cli_text_clean(&a->out, lk_text(path));
  }
  cli_text_puts(&a->out, "\n");
}

static int create_deep(cli_ask *a, lk_bytes data, const lk_acls *acl, int flags)
{
  lk_parents parents = {.size = sizeof parents, .acl = acl};
  lk_call call = cli_ask_call(a, false);

  return lk_create_deep(a->link.client, a->path, data, acl, flags, &parents,
                        &call, on_created, a);
}

static int create(cli_ask *a, lk_bytes data, const lk_acls *acl)
{
  const cli_options *o = a->options;
  int flags = o->container ? LK_CONTAINER
                           : (o->ephemeral ? LK_EPHEMERAL : 0) |
                                 (o->sequential ? LK_SEQUENTIAL : 0);
  lk_call call = cli_ask_call(a, true);
  int err = o->parents ? create_deep(a, data, acl, flags)
                       : lk_create_settled(a->link.client, a->path, data, acl,
                                           flags, false, &call, on_created, a);

  return cli_ask_wait(a, err);
}

/* ---- create -e: stay -------------------------------------------------------
 */

typedef struct stay {
  bool done;
  int code;
} stay;

static void on_interrupt(struct ev_loop *loop, ev_signal *watcher, int events)
{
  stay *s = watcher->data;

  (void)loop;
  (void)events;
  s->done = true;
}

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  stay *s = arg;

  (void)c;
  if (state != LK_STATE_EXPIRED && state != LK_STATE_AUTH_FAILED)
    return;
  cli_say("the session is over and the node is gone: %s", lk_error_text(err));
  s->code = CLI_FAILED;
  s->done = true;
}

/* An ephemeral node lives as long as its session. */
static int stay_until_interrupted(cli_ask *a)
{
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  enum { COUNT = sizeof numbers / sizeof numbers[0] };
  stay s = {.code = CLI_DONE};
  lk_listener listener = {.state = on_state, .arg = &s};
  ev_signal watchers[COUNT];

  lk_client_attach(a->link.client, &listener);
  for (int i = 0; i < COUNT; i++) {
    ev_signal_init(&watchers[i], on_interrupt, numbers[i]);
    watchers[i].data = &s;
    ev_signal_start(a->link.loop, &watchers[i]);
  }
  cli_link_run(&a->link, &s.done);
  for (int i = 0; i < COUNT; i++)
    ev_signal_stop(a->link.loop, &watchers[i]);
  lk_client_detach(a->link.client, &listener);
  return s.code;
}

static int create_and_stay(cli_ask *a, lk_bytes data, const lk_acls *acl)
{
  int err = create(a, data, acl);

  if (err != 0 || !a->options->ephemeral)
    return cli_ask_close(a, err);
  int code = cli_print(&a->out);

  a->out.len = 0;
  if (code == CLI_DONE)
    code = stay_until_interrupted(a);
  int closed = cli_ask_close(a, 0);

  return code != CLI_DONE ? code : closed;
}

int cli_create(const cli_options *o, char **operands)
{
  cli_text complaint = {0};
  cli_text data = {0};
  int code = CLI_FAILED;
  cli_acl acl;
  cli_ask a;

  if (o->container && (o->ephemeral || o->sequential)) {
    cli_say("create: -c goes with neither -e nor -s");
    return CLI_FAILED;
  }
  if (!cli_acl_read(&acl, "--acl", o->acl, &complaint)) {
    cli_say_text(&complaint);
    return CLI_FAILED;
  }
  if (read_data(operands[1], &data) &&
      cli_ask_open(&a, o, "create", operands[0]))
    code = create_and_stay(&a, data_of(&data), &acl.list);
  cli_text_free(&data);
  cli_acl_free(&acl);
  return code;
}
