/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include <latchkey/nodes.h>

#include "cli/access.h"
#include "cli/ask.h"
#include "cli/data.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/nodes.h"
#include "cli/print.h"

/* ---- asking ------------------------------------------------------------- */

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

static int kind_of(const cli_options *o)
{
  if (o->container)
    return LK_CONTAINER;
  return (o->ephemeral ? LK_EPHEMERAL : 0) |
         (o->sequential ? LK_SEQUENTIAL : 0);
}

static int create_deep(cli_ask *a, lk_bytes data, const lk_acls *acl)
{
  lk_parents parents = {.size = sizeof parents, .acl = acl};
  lk_call call = cli_ask_call(a, false);

  return lk_create_deep(a->link.client, a->path, data, acl, kind_of(a->options),
                        &parents, &call, on_created, a);
}

static void on_parent(lk_client *c, int err, const char *path,
                      const lk_stat *stat, void *arg)
{
  (void)c;
  (void)path;
  (void)stat;
  cli_ask_answer(arg, err == LK_ERR_NODE_EXISTS ? 0 : err);
}

/* The node above it, and those above that. */
static int make_parents(cli_ask *a, const lk_acls *acl)
{
  size_t len = (size_t)(strrchr(a->path, '/') - a->path);
  lk_parents parents = {.size = sizeof parents, .acl = acl};
  lk_call call = cli_ask_call(a, false);
  cli_text path = {0};

  if (len == 0)
    return 0;
  cli_text_add(&path, a->path, len);
  const char *above = cli_text_end(&path);
  int err = above == NULL
                ? LK_ERR_NO_MEMORY
                : lk_create_deep(a->link.client, above, lk_text(""), acl,
                                 LK_PERSISTENT, &parents, &call, on_parent, a);

  cli_text_free(&path);
  return cli_ask_wait(a, err);
}

/* Not settled: whose node it is cannot be told when the answer was lost. */
static int create_ttl(cli_ask *a, lk_bytes data, const lk_acls *acl)
{
  int err = a->options->parents ? make_parents(a, acl) : 0;
  lk_call call = cli_ask_call(a, false);

  return err != 0 ? err
                  : lk_create_ttl(a->link.client, a->path, data, acl,
                                  kind_of(a->options), a->options->ttl_ms,
                                  &call, on_created, a);
}

static int create_settled(cli_ask *a, lk_bytes data, const lk_acls *acl)
{
  lk_call call = cli_ask_call(a, true);

  return lk_create_settled(a->link.client, a->path, data, acl,
                           kind_of(a->options), false, &call, on_created, a);
}

static int create(cli_ask *a, lk_bytes data, const lk_acls *acl)
{
  int err = a->options->ttl_ms != 0 ? create_ttl(a, data, acl)
            : a->options->parents   ? create_deep(a, data, acl)
                                    : create_settled(a, data, acl);

  return cli_ask_wait(a, err);
}

/* ---- -e: stay ----------------------------------------------------------- */

typedef struct stay {
  bool done;
  int code;
} stay;

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
  stay s = {.code = CLI_DONE};
  lk_listener listener = {.state = on_state, .arg = &s};
  cli_interrupt interrupt;

  lk_client_attach(a->link.client, &listener);
  cli_interrupt_open(&interrupt, a->link.loop, &s.done);
  cli_link_run(&a->link, &s.done);
  cli_interrupt_close(&interrupt);
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

/* Which options exclude each other; NULL: none of those given. */
static const char *find_conflict(const cli_options *o)
{
  if (o->container && o->ephemeral)
    return "-c and -e exclude each other";
  if (o->container && o->sequential)
    return "-c and -s exclude each other";
  if (o->ttl_ms != 0 && o->ephemeral)
    return "-t and -e exclude each other";
  if (o->ttl_ms != 0 && o->container)
    return "-t and -c exclude each other";
  return NULL;
}

int cli_create(const cli_options *o, char **operands)
{
  const char *conflict = find_conflict(o);
  cli_text complaint = {0};
  cli_text data = {0};
  int code = CLI_FAILED;
  cli_acl acl;
  cli_ask a;

  if (conflict != NULL)
    return cli_fail(CLI_FAILED,
                    "create: %s; latchkey create --help says what they mean",
                    conflict);
  if (!cli_acl_read(&acl, "--acl", o->acl, &complaint))
    return cli_fail_text(CLI_FAILED, "create", &complaint);
  if (cli_data_read(operands[1], &data) &&
      cli_ask_open(&a, o, "create", operands[0]))
    code = create_and_stay(&a, cli_data_bytes(&data), &acl.list);
  cli_text_free(&data);
  cli_acl_free(&acl);
  return code;
}
