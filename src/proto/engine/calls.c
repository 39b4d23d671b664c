/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/calls.h"
#include "proto/engine/client.h"
#include "proto/engine/server_support.h"
#include "proto/wire/create_mode.h"
#include "proto/wire/opcode.h"
#include "proto/wire/path.h"

int lk__call_copy_options(const lk_client *c, const lk_sized_struct *what,
                          void *out, const void *from)
{
  const char *wrong = lk__sized_struct_copy(what, out, from);

  if (wrong == NULL)
    return 0;
  lk_client_log(c, LK_LOG_ERROR, LK_ERR_BAD_ARGUMENT, wrong);
  return LK_ERR_BAD_ARGUMENT;
}

int lk__call_take_watch_options(lk_client *c, lk_call_spec *spec,
                                const lk_call *call)
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_call);

  if (call == NULL)
    return 0;
  spec->call = &spec->options;
  return lk__call_copy_options(c, &what, &spec->options, call);
}

static bool asks_for_watch(const lk_call_spec *spec)
{
  return spec->call != NULL && spec->call->on_event != NULL;
}

/* The requests of these callers cannot set a watch. */
int lk__call_take_options(lk_client *c, lk_call_spec *spec, const lk_call *call)
{
  int err = lk__call_take_watch_options(c, spec, call);

  return err == 0 && asks_for_watch(spec) ? LK_ERR_BAD_ARGUMENT : err;
}

/* Whether the caller asks to repeat a write, which is refused: it could be
 * executed twice. */
static bool repeats_write(const lk_call_spec *spec)
{
  return spec->call != NULL && spec->call->repeat &&
         lk__opcode_info(spec->op)->write;
}

int lk__call_send(lk_client *c, lk_call_spec *spec, const lk_record *rec,
                  const void *value)
{
  int err = lk__request_refusal(c);

  if (err != 0)
    return err;
  if (repeats_write(spec))
    return LK_ERR_BAD_ARGUMENT;
  if (c->connection.phase == LK_PHASE_LIVE)
    err = lk__request_support_error(c, spec->op);
  if (err != 0)
    return err;
  spec->rec = rec;
  spec->value = value;
  if (spec->chroot == NULL)
    spec->chroot = c->hosts.chroot;
  return lk__request_queue(c, spec);
}

static int call_on_path(lk_client *c, lk_call_spec *spec, lk_path_use use,
                        const lk_record *rec, const void *value,
                        const lk_call *call)
{
  int err = lk__call_take_options(c, spec, call);

  if (err != 0)
    return err;
  if (!lk__path_valid(spec->path, use))
    return LK_ERR_BAD_PATH;
  spec->path = lk__path_rest(c->hosts.chroot, spec->path, use);
  return lk__call_send(c, spec, rec, value);
}

int lk__call_on_node(lk_client *c, lk_call_spec *spec, const lk_record *rec,
                     const void *value, const lk_call *call)
{
  return call_on_path(c, spec, LK_PATH_OF_NODE, rec, value, call);
}

int lk__call_create(lk_client *c, lk_call_spec *spec, int flags,
                    const lk_record *rec, const void *value,
                    const lk_call *call)
{
  return call_on_path(c, spec, lk__create_path_use(flags), rec, value, call);
}

/* Set spec->covered: whether a persistent watch covers the watch of `spec`. */
static int find_covering_watch(lk_client *c, lk_call_spec *spec)
{
  /* Without a connection, the waiting requests will be sent before this one. */
  lk_coverage coverage = c->connection.phase == LK_PHASE_LIVE
                             ? LK_BY_SENT_REQUESTS
                             : LK_BY_ALL_REQUESTS;
  lk_watched *on;
  int err;

  if (c->watches.adding == 0)
    return 0; /* no persistent watch was requested */
  err = lk__request_find_watched(c, spec, &on);
  spec->covered =
      on != NULL && lk__watched_covers(&c->watches, on, spec->kind, coverage);
  return err;
}

int lk__call_read(lk_client *c, lk_call_spec *spec, const lk_call *call)
{
  int err = lk__call_take_watch_options(c, spec, call);

  if (err != 0)
    return err;
  if (!lk__path_valid(spec->path, LK_PATH_OF_NODE))
    return LK_ERR_BAD_PATH;
  if (spec->chroot == NULL) {
    spec->path = lk__path_rest(c->hosts.chroot, spec->path, LK_PATH_OF_NODE);
    spec->chroot = c->hosts.chroot;
  }
  if (asks_for_watch(spec))
    err = find_covering_watch(c, spec);
  if (err != 0)
    return err;
  bool sets_watch = asks_for_watch(spec) && !spec->covered;
  struct lk_path_watch_request r = {.watch = sets_watch};

  return lk__call_send(c, spec, &lk__path_watch_request_record, &r);
}
