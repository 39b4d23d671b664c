/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/output/error_report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <latchkey/error.h>

#include "cli/output/exit_code.h"

typedef struct error_report {
  int err;
  bool negative;      /* a negative reply, not a failure: CLI_EXIT_NO */
  bool ask_doctor;    /* `latchkey doctor` examines the cause */
  const char *layer;  /* where the doctor reports it; NULL: "access" */
  const char *reason; /* NULL: lk_error_text() */
  const char *advice; /* begins with punctuation, as in "; try again"; NULL: no
                         advice */
} error_report;

#define NOT_ZOOKEEPER                                                   \
  "; that is not the client port of a ZooKeeper server, or it expects " \
  "TLS (--tls)"

/* clang-format off */
static const error_report error_reports[] = {
  {LK_ERR_NO_NODE, .negative = true},
  {LK_ERR_NODE_EXISTS, .negative = true},
  {LK_ERR_BAD_VERSION, .negative = true,
   .advice = "; latchkey stat shows its version"},
  {LK_ERR_NOT_EMPTY, .negative = true,
   .advice = "; delete its children first, or use -r"},
  {LK_ERR_NO_CHILDREN_FOR_EPHEMERALS, .negative = true,
   .advice = "; choose a path that is not below an ephemeral node"},
  {LK_ERR_PROTOCOL, .ask_doctor = true, .advice = NOT_ZOOKEEPER},
  {LK_ERR_MARSHALLING, .ask_doctor = true, .advice = NOT_ZOOKEEPER},
  {LK_ERR_REFUSED, .ask_doctor = true, .advice = NOT_ZOOKEEPER},
  {LK_ERR_AUTH_FAILED, .ask_doctor = true, .layer = "auth",
   .advice = "; check the lines of --auth-file"},
  {LK_ERR_AUTH_REQUIRED, .ask_doctor = true, .layer = "auth",
   .advice = "; --auth-file or --cert gives an identity"},
  {LK_ERR_NO_AUTH, .advice = "; " CLI_ADVICE_IDENTITY},
  {LK_ERR_INVALID_ACL, .reason = "the server refuses the access list",
   .advice = ": it does not know a scheme or an id in it, or the list is "
             "creator (auth) and neither --auth-file nor --cert is given (a "
             "server with ssl.clientAuth=none ignores --cert)"},
  {LK_ERR_TOO_BIG,
   .reason = "the request is larger than --max-request allows",
   .advice = "; jute.maxbuffer of the servers limits it, too (both are 1 MiB "
             "by default)"},
  {LK_ERR_REPLY_TOO_BIG,
   .reason = "the reply is larger than --max-reply allows",
   .advice = "; raise it (16M by default)"},
  {LK_ERR_NOT_READ_ONLY, .ask_doctor = true, .layer = "read-only",
   .advice = "; start a majority of the ensemble's servers"},
  {LK_ERR_EPHEMERAL_ON_LOCAL_SESSION,
   .advice = "; zoo.cfg needs localSessionsUpgradingEnabled=true"},
  {LK_ERR_DEADLINE, .ask_doctor = true, .layer = "session",
   .reason = "the servers did not reply in time", .advice = "; try again"},
  {LK_ERR_CONNECTION_LOSS, .ask_doctor = true, .layer = "session",
   .advice = "; try again"},
  {LK_ERR_NOT_SENT, .ask_doctor = true, .layer = "session",
   .advice = "; try again"},
  {LK_ERR_SESSION_EXPIRED, .ask_doctor = true, .advice = "; try again"},
  {LK_ERR_THROTTLED, .advice = "; try again"},
  {LK_ERR_UNIMPLEMENTED, .ask_doctor = true, .layer = "version",
   .reason = "the server is too old",
   .advice = "; ZooKeeper " CLI_OLDEST_VERSION " or newer is needed"},
  {LK_ERR_QUOTA_EXCEEDED, .advice = "; delete nodes there, or raise the quota"},
  {LK_ERR_IN_DOUBT, .ask_doctor = true, .layer = "session",
   .advice = "; read the node, and try again if it is not done"},
  {LK_ERR_CLOSED, .layer = "session"},
};
/* clang-format on */

static const error_report *find_error_report(int err)
{
  static const error_report unlisted = {0};

  for (size_t i = 0; i < sizeof error_reports / sizeof error_reports[0]; i++)
    if (error_reports[i].err == err)
      return &error_reports[i];
  return &unlisted;
}

int cli_error_exit_code(int err)
{
  if (err == 0)
    return CLI_EXIT_DONE;
  return find_error_report(err)->negative ? CLI_EXIT_NO : CLI_EXIT_FAILED;
}

const char *cli_error_reason(int err)
{
  static char unknown[64];
  const char *reason = find_error_report(err)->reason;

  if (reason != NULL)
    return reason;
  if (lk_error_name(err) != NULL)
    return lk_error_text(err);
  snprintf(unknown, sizeof unknown, "error %d, which latchkey does not know",
           err);
  return unknown;
}

const char *cli_error_advice(int err)
{
  const char *advice = find_error_report(err)->advice;

  return advice != NULL ? advice : "";
}

const char *cli_error_doctor_advice(int err)
{
  return find_error_report(err)->ask_doctor ? "; latchkey doctor tells more"
                                            : "";
}

const char *cli_error_layer(int err)
{
  const char *layer = find_error_report(err)->layer;

  return layer != NULL ? layer : "access";
}

const char *cli_error_verb_reason(const char *verb, int err)
{
  static const char write_in_doubt[] =
      "the servers did not reply in time: the write may or may not have been "
      "executed; read the node, and try again if it is not done; latchkey "
      "doctor tells more";
  static const struct {
    const char *verb;
    int err;
    const char *reason;
  } reasons[] = {
      {"create", LK_ERR_NO_NODE,
       "the parent does not exist; -p creates missing parents"},
      {"create", LK_ERR_UNIMPLEMENTED,
       "the server is too old; ZooKeeper " CLI_OLDEST_VERSION
       " or newer is needed, and for -t also "
       "zookeeper.extendedTypesEnabled=true"},
      {"create", LK_ERR_DEADLINE, write_in_doubt},
      {"set", LK_ERR_DEADLINE, write_in_doubt},
      {"delete", LK_ERR_DEADLINE, write_in_doubt},
      {"watch", LK_ERR_UNIMPLEMENTED,
       "the server does not support persistent watches; ZooKeeper 3.6 or "
       "newer is needed"},
      {"create", LK_ERR_NO_AUTH,
       "not allowed by the access list of the parent; " CLI_ADVICE_IDENTITY},
      {"delete", LK_ERR_NO_AUTH,
       "not allowed by the access list of the parent; " CLI_ADVICE_IDENTITY},
      {"delete", LK_ERR_BAD_ARGUMENT,
       "the root and ZooKeeper's own nodes cannot be deleted"},
  };

  for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
    if (reasons[i].err == err && strcmp(reasons[i].verb, verb) == 0)
      return reasons[i].reason;
  return NULL;
}
