/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/calls.h"
#include "proto/wire/path.h"

int lk__call_copy_options(const lk_client *c, const lk_sized *what, void *out,
                          const void *from)
{
  const char *wrong = lk__sized_copy(what, out, from);

  if (wrong == NULL)
    return 0;
  lk_client_log(c, LK_LOG_ERROR, LK_ERR_BAD_ARGUMENT, wrong);
  return LK_ERR_BAD_ARGUMENT;
}

int lk__call_take_options(lk_client *c, lk_call_spec *ask, lk_call *own,
                          const lk_call *call, bool watchable)
{
  static const lk_sized what = LK_SIZED(lk_call);

  if (call == NULL)
    return 0;
  int err = lk__call_copy_options(c, &what, own, call);

  if (err == 0 && own->on_event != NULL && !watchable)
    err = LK_ERR_BAD_ARGUMENT;
  ask->call = own;
  return err;
}

/* A write that is asked again might be done twice. */
static bool asks_too_much(const lk_call_spec *ask)
{
  return ask->call != NULL && ask->call->repeat &&
         lk__opcode_info(ask->op)->write;
}

int lk__call_send(lk_client *c, lk_call_spec *ask, const lk_record *rec,
                  const void *value)
{
  int err = lk__request_refusal(c);

  if (err != 0)
    return err;
  if (asks_too_much(ask))
    return LK_ERR_BAD_ARGUMENT;
  if (c->phase == LK_PHASE_LIVE)
    err = lk__request_unsupported(c, ask->op);
  if (err != 0)
    return err;
  ask->rec = rec;
  ask->value = value;
  if (ask->chroot == NULL)
    ask->chroot = c->hosts.chroot;
  return lk__request_queue(c, ask);
}

int lk__call_on_node(lk_client *c, lk_call_spec *ask, bool sequence,
                     const lk_record *rec, const void *value,
                     const lk_call *call)
{
  lk_call own;
  int err = lk__call_take_options(c, ask, &own, call, false);

  if (err != 0)
    return err;
  if (!lk__path_valid(ask->path, sequence))
    return LK_ERR_BAD_PATH;
  ask->path = lk__path_rest(c->hosts.chroot, ask->path, sequence);
  return lk__call_send(c, ask, rec, value);
}

/* Whether a watch that stays is there for what `ask` wants to watch. */
static int look_for_cover(lk_client *c, lk_call_spec *ask)
{
  lk_watched *on;
  int err;

  if (c->watches.adding == 0)
    return 0;
  err = lk__request_find_watched(c, ask, &on);
  ask->covered = on != NULL && lk__watched_covers(&c->watches, on, ask->kind,
                                                  c->phase == LK_PHASE_LIVE);
  return err;
}

int lk__call_read(lk_client *c, lk_call_spec *ask, const lk_call *call)
{
  lk_call own;
  int err = lk__call_take_options(c, ask, &own, call, true);

  if (err != 0)
    return err;
  bool watches = ask->call != NULL && ask->call->on_event != NULL;

  if (!lk__path_valid(ask->path, false))
    return LK_ERR_BAD_PATH;
  if (ask->chroot == NULL) {
    ask->path = lk__path_rest(c->hosts.chroot, ask->path, false);
    ask->chroot = c->hosts.chroot;
  }
  err = watches ? look_for_cover(c, ask) : 0;
  struct lk_path_watch_request r = {.watch = watches && !ask->covered};

  return err != 0 ? err
                  : lk__call_send(c, ask, &lk__path_watch_request_record, &r);
}
