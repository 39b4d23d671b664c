/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/auth.h"

#include "jute/writer.h"
#include "proto/engine/calls.h"
#include "proto/engine/client.h"
#include "proto/engine/invariants.h"
#include "proto/wire/opcode.h"

/* The length of the frame without its length field: the header of two ints, the
 * int `type`, and two texts with their length fields. */
static size_t auth_frame_len(const char *scheme, lk_bytes auth)
{
  return 8 + 4 + 4 + strlen(scheme) + 4 + auth.len;
}

static lk_auth *new_auth(lk_client *c, const char *scheme, lk_bytes auth)
{
  struct lk_request_header header = {LK_XID_AUTH, LK_OPCODE_AUTH};
  struct lk_auth_request r = {.scheme = lk_text(scheme), .auth = auth};
  size_t len = auth_frame_len(scheme, auth);
  lk_auth *a = lk__mem_new(&c->mem, sizeof *a + 4 + len);
  lk_writer w;

  if (a == NULL)
    return NULL;
  lk__writer_init(&w, a->frame, 4 + len);
  lk__writer_int(&w, (int32_t)len);
  lk__record_encode(&lk__request_header_record, &header, &w);
  lk__record_encode(&lk__auth_request_record, &r, &w);
  a->len = w.len;
  return a;
}

static void auth_free(lk_client *c, lk_auth *a)
{
  lk__mem_wipe(a->frame, a->len);
  lk__mem_free(&c->mem, a);
}

void lk__auth_free_all(lk_client *c)
{
  while (c->auth.first != NULL) {
    lk_auth *a = c->auth.first;

    c->auth.first = a->next;
    auth_free(c, a);
  }
}

bool lk__auth_send_all(lk_client *c)
{
  c->auth.next_reply = c->auth.first;
  for (const lk_auth *a = c->auth.first; a != NULL; a = a->next) {
    if (!lk__buf_append_secret(&c->output.bytes, a->frame, a->len))
      return false;
  }
  return true;
}

static void auth_complete(lk_client *c, lk_auth *a, int err)
{
  lk_done_cb done = a->done;

  a->done = NULL;
  lk__invariants_check(c, LK_MOMENT_CALLBACK);
  if (done != NULL)
    done(c, err, a->arg);
}

bool lk__auth_accept_next(lk_client *c)
{
  lk_auth *a = c->auth.next_reply;

  if (a == NULL)
    return false;
  c->auth.next_reply = a->next;
  auth_complete(c, a, 0);
  return true;
}

void lk__auth_fail_all(lk_client *c, int err)
{
  for (lk_auth *a = c->auth.first; a != NULL; a = a->next)
    auth_complete(c, a, err);
}

int lk_add_auth(lk_client *c, const char *scheme, lk_bytes auth,
                lk_done_cb done, void *arg)
{
  int err = lk__request_refusal(c);

  if (err != 0)
    return err;
  if (scheme == NULL || scheme[0] == '\0' || auth.at == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (auth.len > c->options.send_limit ||
      auth_frame_len(scheme, auth) > c->options.send_limit)
    return LK_ERR_TOO_BIG;
  lk_auth *a = new_auth(c, scheme, auth);

  if (a == NULL)
    return LK_ERR_NO_MEMORY;
  if (c->connection.phase == LK_PHASE_LIVE &&
      !lk__buf_append_secret(&c->output.bytes, a->frame, a->len)) {
    auth_free(c, a);
    return LK_ERR_NO_MEMORY;
  }
  a->done = done;
  a->arg = arg;
  lk_auth **last = &c->auth.first;

  while (*last != NULL)
    last = &(*last)->next;
  *last = a;
  if (c->connection.phase == LK_PHASE_LIVE && c->auth.next_reply == NULL)
    c->auth.next_reply = a;
  lk__client_wake(c);
  return 0;
}

int lk_who_am_i(lk_client *c, const lk_call *call, lk_identities_cb done,
                void *arg)
{
  lk_call_spec spec = {
      .op = LK_OPCODE_WHO_AM_I, .done = (void (*)(void))done, .arg = arg};
  lk_call own;
  int err = lk__call_take_options(c, &spec, &own, call, false);

  return err != 0 ? err : lk__call_send(c, &spec, NULL, NULL);
}
