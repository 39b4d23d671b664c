/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "live/support/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- clients ------------------------------------------------------------ */

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  object *o = arg;

  print_line(o->name,
             "state %s err=%s connection=%" PRIu64 " session=0x%" PRIx64,
             lk_state_text(state), error_word(err), lk_client_connection(c),
             (uint64_t)lk_client_session(c).id);
}

static void on_log(void *arg, lk_log_level level, int err, const char *text)
{
  object *o = arg;

  print_line(o->name, "log %d %s %s", level, error_word(err), text);
}

static void on_left_behind(lk_client *c, const char *path, int err, void *arg)
{
  object *o = arg;

  (void)c;
  print_line(o->name, "left_behind path=%s err=%s", path, error_word(err));
}

/* Parse "ID:PASSWORD", both in hex; returns false if it is not that. */
static bool parse_session(const char *text, lk_session *out)
{
  const char *colon = text == NULL ? NULL : strchr(text, ':');
  uint64_t id;
  unsigned byte;

  if (colon == NULL || sscanf(text, "%" SCNx64, &id) != 1)
    return false;
  out->id = (int64_t)id;
  for (size_t i = 0; i < sizeof out->password; i++) {
    if (sscanf(colon + 1 + 2 * i, "%2x", &byte) != 1)
      return false;
    out->password[i] = (unsigned char)byte;
  }
  return true;
}

/* Fill `out` from the options for TLS; returns whether one of them, `ca` or
 * `any_certificate`, selects TLS. */
static bool parse_tls(const command *cmd, lk_tls_config *out)
{
  *out = (lk_tls_config){
      .size = sizeof *out,
      .ca_file = option(cmd, "ca"),
      .cert_file = option(cmd, "cert"),
      .key_file = option(cmd, "key"),
      .password_file = option(cmd, "password_file"),
      .crl_file = option(cmd, "crl"),
      .server_name = option(cmd, "server_name"),
      .any_name = option_flag(cmd, "any_name"),
      .any_certificate = option_flag(cmd, "any_certificate"),
  };
  return out->ca_file != NULL || out->any_certificate;
}

/* Make the client of the object, with a lease. After an error `o->client` may
 * be set. */
static int make_client(const command *cmd, object *o)
{
  lk_session session = {0};
  lk_tls_config tls;
  lk_client_config config = {
      .size = sizeof config,
      .hosts = option(cmd, "hosts"),
      .session_timeout_ms = (int32_t)option_number(cmd, "timeout", 0),
      .give_up_ms = (int32_t)option_number(cmd, "give_up", 0),
      .one_session = option_flag(cmd, "one_session"),
      .read_only = option_flag(cmd, "read_only"),
      .send_limit = (size_t)option_number(cmd, "send_limit", 0),
      .receive_limit = (size_t)option_number(cmd, "receive_limit", 0),
      .outstanding_limit = (size_t)option_number(cmd, "outstanding", 0),
      .resume =
          parse_session(option(cmd, "resume"), &session) ? &session : NULL,
      .log = on_log,
      .log_arg = o,
      .tls = parse_tls(cmd, &tls) ? &tls : NULL,
  };
  lk_lease_config lease = {
      .size = sizeof lease,
      .assurance = (lk_assurance)option_number(cmd, "assurance", 0),
      .margin_ms = (int32_t)option_number(cmd, "margin", 0),
      .gap_ms = (int32_t)option_number(cmd, "gap", 0),
      .left_behind = on_left_behind,
      .arg = o,
  };
  int err = test_driver_client_new(&o->client, &config);

  if (err != 0)
    return err;
  o->listener.size = sizeof o->listener;
  o->listener.state = on_state;
  o->listener.arg = o;
  lk_client_attach(o->client, &o->listener);
  return lk_lease_configure(o->client, &lease);
}

static void execute_client(const command *cmd, object *none)
{
  object *o = object_new(cmd->name);
  int err = make_client(cmd, o);

  (void)none;
  if (err != 0)
    object_free_client(o);
  report_made(cmd, err);
}

void object_free_client(object *o)
{
  if (o->client != NULL)
    lk_client_detach(o->client, &o->listener);
  lk_client_free(o->client);
  object_forget(o);
}

static void execute_free(const command *cmd, object *o)
{
  object_free(o);
  print_line(cmd->tag, "err=0");
}

static void execute_hosts(const command *cmd, object *o)
{
  print_line(cmd->tag, "err=%s",
             error_word(lk_client_set_hosts(o->client, option(cmd, "hosts"))));
}

static void on_closed(lk_client *c, int err, void *tag)
{
  (void)c;
  print_line(tag, "err=%s", error_word(err));
  free(tag);
}

static void execute_close(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);

  report_if_refused(cmd, lk_client_close(o->client, on_closed, tag), tag);
}

static void execute_facts(const command *cmd, object *o)
{
  lk_client *c = o->client;
  lk_session s = lk_client_session(c);
  int64_t deadline = lk_lease_deadline(c);
  const char *unused_text;
  int last_error = lk_client_last_error(c, &unused_text);

  print_line(cmd->tag,
             "err=0 state=%s connection=%" PRIu64 " session=0x%" PRIx64
             " password=%s server=%s timeout=%" PRId32 " deadline=%" PRId64
             " unfinished=%zu trouble=%s",
             lk_state_text(lk_client_state(c)), lk_client_connection(c),
             (uint64_t)s.id, hex(lk_bytes_of(s.password, sizeof s.password)),
             lk_client_server(c), lk_client_timeout_ms(c), deadline,
             lk_lease_pending_cleanups(c), error_word(last_error));
}

/* ---- requests ----------------------------------------------------------- */

/* A one-shot watch that has not fired yet. */
typedef struct watch_entry {
  char name[64]; /* of the client's object */
  char tag[32];  /* of the command that set the watch */
  lk_watch *watch;
  struct watch_entry *next;
} watch_entry;

static watch_entry *watch_entries;

static void forget_watch(watch_entry *w)
{
  watch_entry **at = &watch_entries;

  while (*at != w)
    at = &(*at)->next;
  *at = w->next;
  free(w);
}

static void on_event(lk_client *c, lk_watch *watch, const lk_event *event,
                     void *arg)
{
  watch_entry *w = arg;

  (void)c;
  (void)watch;
  print_line(w->name, "event tag=%s type=%d err=%s path=%.*s", w->tag,
             (int)event->type, error_word(event->err), (int)event->path.len,
             (const char *)event->path.at);
  forget_watch(w);
}

typedef struct request {
  lk_call call;
  watch_entry *watch; /* NULL: the request sets no watch */
} request;

static request request_from(const command *cmd)
{
  request r = {.call = {.size = sizeof r.call}};

  r.call.timeout_ms = option_number(cmd, "wait", 0);
  r.call.repeat = option_flag(cmd, "repeat");
  r.call.until_disconnect = option_flag(cmd, "until_disconnect");
  if (option_number(cmd, "watch", 0) == 0)
    return r;
  r.watch = calloc(1, sizeof *r.watch);
  if (r.watch == NULL)
    abort();
  snprintf(r.watch->name, sizeof r.watch->name, "%s", cmd->name);
  snprintf(r.watch->tag, sizeof r.watch->tag, "%s", cmd->tag);
  r.watch->next = watch_entries;
  watch_entries = r.watch;
  r.call.on_event = on_event;
  r.call.watch_arg = r.watch;
  r.call.watch = &r.watch->watch;
  return r;
}

static void clean_up_if_refused(const command *cmd, request *r, int err,
                                void *tag)
{
  if (err != 0 && r->watch != NULL)
    forget_watch(r->watch);
  report_if_refused(cmd, err, tag);
}

/* A request that failed has set no watch: on_event() will not forget it. */
static void forget_watch_of_request(const char *tag)
{
  for (watch_entry *w = watch_entries; w != NULL; w = w->next) {
    if (strcmp(w->tag, tag) == 0) {
      forget_watch(w);
      return;
    }
  }
}

static void finish_request(void *tag, int err, const char *rest)
{
  print_line(tag, "err=%s%s", error_word(err), rest);
  free(tag);
}

/* Write the members of the stat; nothing if it is NULL. */
static void print_stat(char *out, size_t size, const lk_stat *s)
{
  out[0] = '\0';
  if (s != NULL)
    snprintf(out, size,
             " czxid=%" PRId64 " mzxid=%" PRId64 " version=%" PRId32
             " cversion=%" PRId32 " aversion=%" PRId32 " owner=0x%" PRIx64
             " length=%" PRId32 " children=%" PRId32,
             s->czxid, s->mzxid, s->version, s->cversion, s->aversion,
             (uint64_t)s->ephemeral_owner, s->data_length, s->num_children);
}

void report_done(lk_client *c, int err, void *tag)
{
  (void)c;
  finish_request(tag, err, "");
}

void report_created(lk_client *c, int err, const char *path,
                    const lk_stat *stat, void *tag)
{
  char text[1024], facts[512];

  (void)c;
  print_stat(facts, sizeof facts, stat);
  snprintf(text, sizeof text, " path=%s%s", path == NULL ? "null" : path,
           facts);
  finish_request(tag, err, text);
}

void report_stat(lk_client *c, int err, const lk_stat *stat, void *tag)
{
  char text[512];

  (void)c;
  print_stat(text, sizeof text, stat);
  if (err != 0 && err != LK_ERR_NO_NODE) /* exists() watches a missing node */
    forget_watch_of_request(tag);
  finish_request(tag, err, text);
}

static void on_get(lk_client *c, int err, const lk_bytes *data,
                   const lk_stat *stat, void *tag)
{
  static char text[9000]; /* the longest result of hex(), and the facts */
  char facts[512];

  (void)c;
  print_stat(facts, sizeof facts, stat);
  snprintf(text, sizeof text, " data=%s%s",
           hex(data == NULL ? lk_text(NULL) : *data), facts);
  if (err != 0)
    forget_watch_of_request(tag);
  finish_request(tag, err, text);
}

static void on_children(lk_client *c, int err, const lk_bytes *names,
                        size_t count, const lk_stat *stat, void *tag)
{
  static char text[(1 << 16) + 100]; /* join_names(), and the count */

  (void)c;
  (void)stat;
  snprintf(text, sizeof text, " count=%zu names=%s", count,
           join_names(names, count));
  if (err != 0)
    forget_watch_of_request(tag);
  finish_request(tag, err, text);
}

static void execute_create(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);
  request r = request_from(cmd);

  clean_up_if_refused(
      cmd, &r,
      lk_create2(o->client, option_path(cmd), option_bytes(cmd, "data"),
                 option_acl(cmd, "acl"), (int)option_number(cmd, "flags", 0),
                 &r.call, report_created, tag),
      tag);
}

static void execute_delete(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);
  request r = request_from(cmd);

  clean_up_if_refused(cmd, &r,
                      lk_delete(o->client, option_path(cmd),
                                option_version(cmd), &r.call, report_done, tag),
                      tag);
}

static void execute_exists(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);
  request r = request_from(cmd);

  clean_up_if_refused(
      cmd, &r,
      lk_exists(o->client, option_path(cmd), &r.call, report_stat, tag), tag);
}

static void execute_get(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);
  request r = request_from(cmd);

  clean_up_if_refused(
      cmd, &r, lk_get(o->client, option_path(cmd), &r.call, on_get, tag), tag);
}

static void execute_set(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);
  request r = request_from(cmd);

  clean_up_if_refused(cmd, &r,
                      lk_set(o->client, option_path(cmd),
                             option_bytes(cmd, "data"), option_version(cmd),
                             &r.call, report_stat, tag),
                      tag);
}

static void execute_children(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);
  request r = request_from(cmd);

  clean_up_if_refused(
      cmd, &r,
      lk_get_children(o->client, option_path(cmd), &r.call, on_children, tag),
      tag);
}

static void execute_sync(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);
  request r = request_from(cmd);

  clean_up_if_refused(
      cmd, &r,
      lk_server_sync(o->client, option_path(cmd), &r.call, report_done, tag),
      tag);
}

static void execute_auth(const command *cmd, object *o)
{
  void *tag = copy_tag(cmd);

  report_if_refused(cmd,
                    lk_add_auth(o->client, option(cmd, "scheme"),
                                option_bytes(cmd, "auth"), report_done, tag),
                    tag);
}

const verb client_verbs[] = {
    {"client", execute_client},     {"free", execute_free},
    {"close", execute_close},       {"facts", execute_facts},
    {"hosts", execute_hosts},       {"create", execute_create},
    {"delete", execute_delete},     {"exists", execute_exists},
    {"get", execute_get},           {"set", execute_set},
    {"children", execute_children}, {"sync", execute_sync},
    {"auth", execute_auth},         {NULL, NULL},
};
