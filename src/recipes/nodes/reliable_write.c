/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/acl.h"
#include "base/mem.h"
#include "recipes/call.h"
#include "recipes/error_advice.h"
#include "recipes/nodes/write_outcome.h"
#include "recipes/nodes/write_verification.h"
#include "recipes/retry.h"

#include <latchkey/nodes.h>

/**
 * @file
 * Reliable writes. A reliable write is retried over lost connections until its
 * outcome is known. After a lost reply, requests find out what happened
 * (write_verification.h). Then the write completes, or it is sent again.
 */

typedef struct reliable_write {
  lk_client *client;
  lk_lost_write write;
  char *path;
  lk_bytes data;
  lk_acls *acl;
  int64_t deadline_ms;
  void (*done)(void); /* cast to the callback type of `write.kind`; or NULL */
  void *arg;
  lk_retry_pause pause;
  lk_write_verification verification;
} reliable_write;

static void reliable_write_free(reliable_write *w)
{
  const lk_mem *mem = lk_client_mem(w->client);

  lk__mem_free(mem, w->acl);
  lk__mem_free(mem, w);
}

static void reliable_write_notify(const reliable_write *w, int err,
                                  const char *path, const lk_stat *stat)
{
  if (w->done == NULL)
    return;
  switch (w->write.kind) {
  case LK_WRITE_CREATE:
    ((lk_create_cb)w->done)(w->client, err, path, stat, w->arg);
    break;
  case LK_WRITE_SET: ((lk_stat_cb)w->done)(w->client, err, stat, w->arg); break;
  case LK_WRITE_DELETE: ((lk_done_cb)w->done)(w->client, err, w->arg); break;
  }
}

static void reliable_write_complete(reliable_write *w, int err,
                                    const char *path, const lk_stat *stat)
{
  reliable_write_notify(w, err, path, stat);
  reliable_write_free(w);
}

static void reliable_write_fail(reliable_write *w, int err)
{
  reliable_write_complete(w, err, NULL, NULL);
}

static void reliable_write_send(reliable_write *w);

/* The write has not been executed so far, and cannot be sent again because of
 * `err`. */
static void reliable_write_fail_unsent(reliable_write *w, int err)
{
  reliable_write_fail(w, lk__error_of_unsent(err));
}

/* ---- pause ------------------------------------------------------------- */

static void reliable_write_on_pause_over(void *arg, int err)
{
  reliable_write *w = arg;

  if (err != 0)
    reliable_write_fail_unsent(w, err);
  else
    reliable_write_send(w);
}

static void reliable_write_pause(reliable_write *w)
{
  lk__retry_pause_start(&w->pause, w->client, w->deadline_ms,
                        reliable_write_on_pause_over, w);
}

/* ---- the write --------------------------------------------------------- */

/* Keep the largest zxid that the client has received. */
static void record_seen_zxid(reliable_write *w)
{
  int64_t zxid = lk_client_zxid(w->client);

  if (zxid > w->write.seen_zxid)
    w->write.seen_zxid = zxid;
}

/* The outcome of the write is unknown, for one of two reasons. If the client
 * lost its connection, all replies received until now came before the lost one,
 * so their zxids are older than the write. If the server reports that it lost
 * its connection to the leader, zxids received now may be newer than the write,
 * and none is recorded. */
static void reliable_write_reply_lost(reliable_write *w, int err)
{
  if (err == LK_ERR_IN_DOUBT &&
      !lk__error_is_loss_behind_server(w->client, err))
    record_seen_zxid(w);
  w->write.lost_in_session = lk_client_session(w->client).id;
  if (lk__write_creates_ephemeral(&w->write) && err == LK_ERR_SESSION_EXPIRED)
    reliable_write_fail(w, err);
  else if (w->write.kind == LK_WRITE_CREATE &&
           (w->write.flags & LK_SEQUENTIAL) != 0)
    /* The server chose the name, so the client cannot read the node. */
    reliable_write_fail(w, LK_ERR_IN_DOUBT);
  else
    lk__write_verification_start(&w->verification, w->deadline_ms);
}

static void reliable_write_replied(reliable_write *w, int err, const char *path,
                                   const lk_stat *stat)
{
  if (err == LK_ERR_NOT_SENT)
    reliable_write_send(w);
  else if (lk__error_meaning(err).outcome == LK_OUTCOME_IN_DOUBT)
    reliable_write_reply_lost(w, err);
  else if (lk__error_advice(w->client, err) == LK_ADVICE_RETRY_LATER)
    reliable_write_pause(w);
  else
    reliable_write_complete(w, err, path, stat);
}

static void reliable_write_on_created(lk_client *c, int err, const char *path,
                                      const lk_stat *stat, void *arg)
{
  (void)c;
  reliable_write_replied(arg, err, path, stat);
}

static void reliable_write_on_set(lk_client *c, int err, const lk_stat *stat,
                                  void *arg)
{
  (void)c;
  reliable_write_replied(arg, err, NULL, stat);
}

static void reliable_write_on_deleted(lk_client *c, int err, void *arg)
{
  (void)c;
  reliable_write_replied(arg, err, NULL, NULL);
}

/* A client that has received no reply yet knows no zxid to compare with. This
 * read supplies one, since its reply comes before that of the write. The client
 * keeps the zxid of each reply, so no callback is needed. */
static void request_first_zxid(reliable_write *w, const lk_call *call)
{
  const lk_stat_cb no_callback = NULL;

  if (lk_client_zxid(w->client) == 0)
    (void)lk_exists(w->client, "/", call, no_callback, NULL);
}

static int reliable_write_request(reliable_write *w)
{
  lk_client *c = w->client;
  lk_call call = lk__call_until(w->deadline_ms);

  record_seen_zxid(w);
  request_first_zxid(w, &call);
  switch (w->write.kind) {
  case LK_WRITE_CREATE:
    return lk_create2(c, w->path, w->data, w->acl, w->write.flags, &call,
                      reliable_write_on_created, w);
  case LK_WRITE_SET:
    return lk_set(c, w->path, w->data, w->write.version, &call,
                  reliable_write_on_set, w);
  case LK_WRITE_DELETE:
    return lk_delete(c, w->path, w->write.version, &call,
                     reliable_write_on_deleted, w);
  }
  return LK_ERR_STATE;
}

static void reliable_write_send(reliable_write *w)
{
  int err = reliable_write_request(w);

  if (lk__error_advice(w->client, err) == LK_ADVICE_RETRY_LATER)
    reliable_write_pause(w);
  else if (err != 0)
    reliable_write_fail_unsent(w, err);
}

/* ---- verification ------------------------------------------------------ */

static void reliable_write_on_verified(void *arg, int outcome)
{
  reliable_write *w = arg;

  if (outcome == LK_WRITE_SEND_AGAIN)
    reliable_write_send(w);
  else if (outcome != 0)
    reliable_write_fail(w, outcome);
  else
    reliable_write_complete(w, 0, w->path, &w->verification.node.stat);
}

/* ---- calls ------------------------------------------------------------- */

static const lk_acls *const no_acl = NULL;

/* Path and data are copied into the allocation of the struct. NULL: no memory.
 */
static reliable_write *reliable_write_new(lk_client *c, const char *path,
                                          lk_bytes data)
{
  size_t path_size = strlen(path) + 1;

  if (data.len > SIZE_MAX - sizeof(reliable_write) - path_size)
    return NULL;
  reliable_write *w =
      lk__mem_new(lk_client_mem(c), sizeof *w + path_size + data.len);

  if (w == NULL)
    return NULL;
  w->client = c;
  w->path = (char *)(w + 1);
  memcpy(w->path, path, path_size);
  w->data = data;
  if (data.at != NULL)
    w->data.at = w->path + path_size;
  if (data.len > 0)
    memcpy(w->path + path_size, data.at, data.len);
  w->verification = (lk_write_verification){.client = c,
                                            .path = w->path,
                                            .data = w->data,
                                            .write = &w->write,
                                            .done = reliable_write_on_verified,
                                            .arg = w};
  return w;
}

/* Only `write`, `done` and `arg` of `options` are used. */
static int reliable_write_begin(lk_client *c, const reliable_write *options,
                                const char *path, lk_bytes data,
                                const lk_acls *acl, const lk_call *call)
{
  lk_call timing;
  int err = lk__call_options_copy(c, &timing, call);

  if (err != 0)
    return err;
  if (path == NULL)
    return LK_ERR_BAD_PATH;
  reliable_write *w = reliable_write_new(c, path, data);

  if (w == NULL)
    return LK_ERR_NO_MEMORY;
  w->write = options->write;
  w->done = options->done;
  w->arg = options->arg;
  w->deadline_ms = lk__call_deadline(c, &timing);
  if (acl != NULL) {
    w->acl = lk__acls_copy(lk_client_mem(c), acl);
    if (w->acl == NULL)
      err = LK_ERR_NO_MEMORY;
  }
  if (err == 0)
    err = reliable_write_request(w);
  if (err != 0)
    reliable_write_free(w);
  return err;
}

int lk_create_reliable(lk_client *c, const char *path, lk_bytes data,
                       const lk_acls *acl, int flags, bool sole,
                       const lk_call *call, lk_create_cb done, void *arg)
{
  const reliable_write options = {.write.kind = LK_WRITE_CREATE,
                                  .write.flags = flags,
                                  .write.sole = sole,
                                  .done = (void (*)(void))done,
                                  .arg = arg};

  return reliable_write_begin(c, &options, path, data, acl, call);
}

int lk_set_reliable(lk_client *c, const char *path, lk_bytes data,
                    int32_t version, bool sole, const lk_call *call,
                    lk_stat_cb done, void *arg)
{
  const reliable_write options = {.write.kind = LK_WRITE_SET,
                                  .write.version = version,
                                  .write.sole = sole,
                                  .done = (void (*)(void))done,
                                  .arg = arg};

  return reliable_write_begin(c, &options, path, data, no_acl, call);
}

int lk_delete_reliable(lk_client *c, const char *path, int32_t version,
                       bool sole, const lk_call *call, lk_done_cb done,
                       void *arg)
{
  const reliable_write options = {.write.kind = LK_WRITE_DELETE,
                                  .write.version = version,
                                  .write.sole = sole,
                                  .done = (void (*)(void))done,
                                  .arg = arg};

  const lk_bytes no_data = {0};

  return reliable_write_begin(c, &options, path, no_data, no_acl, call);
}
