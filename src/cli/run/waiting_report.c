/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "cli/locks/contenders.h"
#include "cli/run/runner.h"

/* The report of the position in the queue, with the label of the holder, which
   is read from the holder's node first. */

/* Timeout of the request for the holder's label. */
enum { LABEL_WAIT_MS = 2000 };

/* A report of the position in the queue. It is written when the request for the
   holder's label has completed. */
typedef struct waiting_report {
  cli_runner *runner;
  uint64_t request; /* number of the request; see cli_runner.label_requests */
  size_t position;
  char node[]; /* the holder's, or that of the predecessor */
} waiting_report;

/* Writes the report, unless a newer request was sent meanwhile, and frees it.
 */
static void finish_waiting_report(waiting_report *report, lk_bytes label)
{
  cli_runner *r = report->runner;
  bool is_newest = report->request == r->label_requests;

  if (is_newest && r->phase == CLI_PHASE_ACQUIRING &&
      cli_events_wants_waiting(&r->events))
    cli_events_waiting(&r->events, r->waits_for, lk_lock_node(r->lock),
                       report->position, label);
  free(report);
}

bool cli_run_warn_not_ephemeral(cli_runner *r, const char *node,
                                const lk_stat *stat)
{
  if (stat->ephemeral_owner != 0)
    return false;
  if (!r->not_ephemeral_warned)
    cli_events_notice(&r->events,
                      "warning: %s is not ephemeral, so no session holds it: "
                      "the lock is held until a client deletes the node",
                      node);
  r->not_ephemeral_warned = true;
  return true;
}

static void on_holder_label(lk_client *c, int err, const lk_bytes *data,
                            const lk_stat *stat, void *arg)
{
  const waiting_report *report = arg;
  cli_runner *r = report->runner;
  bool has_label = err == 0 && data->at != NULL && !cli_is_revoke_message(data);

  (void)c;
  if (r->phase == CLI_PHASE_ACQUIRING && err == 0)
    (void)cli_run_warn_not_ephemeral(r, report->node, stat);
  finish_waiting_report(arg, has_label ? *data : lk_text(NULL));
}

/* The node of the holder is read in any case, for
   cli_run_warn_not_ephemeral(). */
void cli_run_report_waiting(cli_runner *r, const lk_lock_event *event)
{
  bool is_next = event->position <= 1;
  const char *node = event->node == NULL ? "" : event->node;

  if (!cli_events_wants_waiting(&r->events) && !is_next)
    return;
  waiting_report *report = malloc(sizeof *report + strlen(node) + 1);
  lk_call call = {.size = sizeof call};

  if (report == NULL)
    return;
  call.deadline_ms = lk_client_clock(r->session.client) + LABEL_WAIT_MS;
  *report = (waiting_report){
      .runner = r, .request = ++r->label_requests, .position = event->position};
  memcpy(report->node, node, strlen(node) + 1);
  if (event->node == NULL || lk_get(r->session.client, event->node, &call,
                                    on_holder_label, report) != 0)
    finish_waiting_report(report, lk_text(NULL));
}
