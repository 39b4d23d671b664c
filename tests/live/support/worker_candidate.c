/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Candidates of elections. Each event prints "candidate elected err=...
 * term=... deadline=... retry=...".
 */

#include "live/support/worker.h"

#include <inttypes.h>

static void on_event(lk_candidate *c, const lk_candidate_event *event,
                     void *arg)
{
  const object *o = arg;

  (void)c;
  print_line(o->name,
             "candidate %s err=%s term=%" PRIu64 " deadline=%" PRId64
             " retry=%" PRId64,
             lk_candidate_event_text(event->type), error_word(event->err),
             event->term, event->deadline_ms, event->retry_ms);
}

/* "candidate NAME client=... path=... layout=N data=HEX" */
static void execute_candidate(const command *cmd, object *none)
{
  lk_client *client = option_client(cmd);

  (void)none;
  if (client == NULL)
    return;
  object *o = object_new(cmd->name);
  lk_candidate_config config = {
      .size = sizeof config, .on_event = on_event, .arg = o};
  lk_lock_config lock = {.size = sizeof lock,
                         .data = option_bytes(cmd, "data"),
                         .persistent_parents = option_flag(cmd, "persistent")};
  int err = lk_election_new(&o->candidate, client, option_path(cmd),
                            (lk_layout)option_number(cmd, "layout", 0),
                            &lock, &config);

  o->client = client;
  if (err != 0)
    object_forget(o);
  report_made(cmd, err);
}

void object_free_candidate(object *o)
{
  lk_candidate_free(o->candidate);
  object_forget(o);
}

static void execute_start(const command *cmd, object *o)
{
  report_made(cmd, lk_candidate_start(o->candidate));
}

static void execute_resign(const command *cmd, object *o)
{
  lk_candidate_resign(o->candidate);
  report_made(cmd, 0);
}

static void execute_candidacy(const command *cmd, object *o)
{
  lk_lock *l = lk_candidate_lock(o->candidate);
  const char *node = lk_lock_node(l);

  print_line(cmd->tag,
             "err=0 state=%s ok=%d term=%" PRIu64 " deadline=%" PRId64
             " node=%s",
             lk_candidate_state_text(lk_candidate_get_state(o->candidate)),
             lk_candidate_ok(o->candidate), lk_lock_token(l),
             lk_lock_deadline(l), node == NULL ? "none" : node);
}

const verb candidate_verbs[] = {{"candidate", execute_candidate},
                                {"start", execute_start},
                                {"resign", execute_resign},
                                {"candidacy", execute_candidacy},
                                {NULL, NULL}};
