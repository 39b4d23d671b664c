/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/auth.h"

#include "jute/writer.h"
#include "proto/engine/calls.h"
#include "proto/engine/client.h"
#include "proto/engine/invariants.h"
#include "proto/wire/opcode.h"

enum { INT_LEN = 4 }; /* bytes of an int, such as a length field */

/* The length of the frame without its length field. */
static size_t len_behind_field(const char *scheme, lk_bytes auth)
{
  size_t header = 2 * INT_LEN, type = INT_LEN;

  return header + type + INT_LEN + strlen(scheme) + INT_LEN + auth.len;
}

static lk_auth *new_auth(lk_client *c, const char *scheme, lk_bytes auth)
{
  struct lk_request_header header = {LK_XID_AUTH, LK_OPCODE_AUTH};
  struct lk_auth_request r = {.scheme = lk_text(scheme), .auth = auth};
  size_t len = len_behind_field(scheme, auth);
  lk_auth *a = lk__mem_new(&c->mem, sizeof *a + INT_LEN + len);
  lk_writer w;

  if (a == NULL)
    return NULL;
  lk__writer_init(&w, a->frame, INT_LEN + len);
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

void lk__auth_accept_next(lk_client *c)
{
  lk_auth *a = c->auth.next_reply;

  c->auth.next_reply = a->next;
  auth_complete(c, a, 0);
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
  if (auth.len > c->options.send_limit || /* so the sum cannot overflow */
      len_behind_field(scheme, auth) > c->options.send_limit)
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
  lk_auth **end = &c->auth.first; /* the pointer at the end of the list */

  while (*end != NULL)
    end = &(*end)->next;
  *end = a;
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
  int err = lk__call_take_options(c, &spec, call);

  return err != 0 ? err : lk__call_send(c, &spec, NULL, NULL);
}
