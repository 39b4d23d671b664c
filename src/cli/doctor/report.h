/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_REPORT_H
#define LK_CLI_DOCTOR_REPORT_H

#include "cli/output/json.h"

typedef enum cli_verdict {
  CLI_VERDICT_OK,
  CLI_VERDICT_NOTE, /**< it works, and is worth knowing */
  CLI_VERDICT_BROKEN
} cli_verdict;

/** What an examination found: a line each, printed at once, or all of it as one
    JSON object at the end. Zero it and set `as_json` to begin. */
typedef struct cli_doctor_report {
  bool as_json;
  size_t broken; /**< how many are */
  cli_text text; /**< the JSON */
  cli_json json;
  cli_verdict verdict; /**< of the one at hand */
  const char *layer;
  int code; /**< exit code of printing */
} cli_doctor_report;

/** Begin a finding. Facts for programs go to the result, until its end. */
cli_json *cli_doctor_report_begin(cli_doctor_report *f, cli_verdict verdict,
                                  const char *layer);
/** End it: what it says, which is freed, and what to do; NULL: nothing. */
void cli_doctor_report_end(cli_doctor_report *f, cli_text *said,
                           const char *advice);

/** Print what is to be printed, give memory back, return the exit code. */
int cli_doctor_report_close(cli_doctor_report *f);

#endif
