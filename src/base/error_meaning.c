/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/error_meaning.h"

#include <latchkey/error.h>

#include <stddef.h>

/* clang-format off */
#define AWAIT LK_ADVICE_AWAIT_CONNECTION
#define LATER LK_ADVICE_RETRY_LATER
#define END   LK_ADVICE_GIVE_UP

static const struct {
  int err;
  lk_error_meaning meaning;
} known_errors[] = {
  /* the outcome, the advice for a request, the advice for a cleanup */
  {0,                        {LK_OUTCOME_EXECUTED,  END,   END}},
  /* the connection broke, or the session expired */
  {LK_ERR_NOT_SENT,          {LK_OUTCOME_NOT_DONE,  AWAIT, AWAIT}},
  {LK_ERR_CONNECTION_LOSS,   {LK_OUTCOME_IN_DOUBT,  AWAIT, AWAIT}},
  {LK_ERR_IN_DOUBT,          {LK_OUTCOME_IN_DOUBT,  AWAIT, AWAIT}},
  {LK_ERR_SESSION_EXPIRED,   {LK_OUTCOME_IN_DOUBT,  AWAIT, AWAIT}},
  /* this server cannot execute it now */
  {LK_ERR_THROTTLED,         {LK_OUTCOME_NOT_DONE,  LATER, LATER}},
  {LK_ERR_SESSION_MOVED,     {LK_OUTCOME_NOT_DONE,  LATER, LATER}},
  {LK_ERR_NOT_READ_ONLY,     {LK_OUTCOME_NOT_DONE,  LATER, LATER}},
  /* this server lost contact with the leader, which may have executed the
     request */
  {LK_ERR_OPERATION_TIMEOUT, {LK_OUTCOME_IN_DOUBT,  END,   LATER}},
  {LK_ERR_REQUEST_TIMEOUT,   {LK_OUTCOME_IN_DOUBT,  END,   LATER}},
  /* this server is in trouble: a node that was left behind would block others
     for as long as the session lives */
  {LK_ERR_SYSTEM,            {LK_OUTCOME_REFUSED,   END,   LATER}},
  {LK_ERR_UNIMPLEMENTED,     {LK_OUTCOME_REFUSED,   END,   LATER}},
  /* the process lacks memory or room for requests */
  {LK_ERR_NO_MEMORY,         {LK_OUTCOME_ABANDONED, END,   LATER}},
  {LK_ERR_TOO_MANY,          {LK_OUTCOME_ABANDONED, END,   LATER}},
  /* the client has ended, and notifies its listeners of that */
  {LK_ERR_AUTH_FAILED,       {LK_OUTCOME_REFUSED,   END,   AWAIT}},
  {LK_ERR_AUTH_REQUIRED,     {LK_OUTCOME_REFUSED,   END,   AWAIT}},
  {LK_ERR_CLOSED,            {LK_OUTCOME_ABANDONED, END,   AWAIT}},
  {LK_ERR_FORKED,            {LK_OUTCOME_ABANDONED, END,   AWAIT}},
};
/* clang-format on */

/* Errors of servers are 0 to -999, those of the client begin at -1000. */
enum { LAST_SERVER_ERROR = -999 };

lk_error_meaning lk__error_meaning(int err)
{
  lk_error_meaning fallback = {err < LAST_SERVER_ERROR ? LK_OUTCOME_ABANDONED
                                                       : LK_OUTCOME_REFUSED,
                               END, END};

  for (size_t i = 0; i < sizeof known_errors / sizeof known_errors[0]; i++) {
    if (known_errors[i].err == err)
      return known_errors[i].meaning;
  }
  return fallback;
}
