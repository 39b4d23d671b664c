/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_REPORT_H
#define LK_CLI_DOCTOR_REPORT_H

#include "cli/output/json.h"

typedef enum cli_verdict {
  CLI_VERDICT_OK,
  CLI_VERDICT_NOTE, /**< not broken, but the user should know it */
  CLI_VERDICT_BROKEN
} cli_verdict;

/** The findings of the doctor: one line each, printed at once; or one JSON
    object at the end. The caller zeroes it and sets `as_json`. */
typedef struct cli_doctor_report {
  bool as_json;
  size_t broken_count; /**< number of findings with CLI_VERDICT_BROKEN */
  cli_text text;       /**< the JSON */
  cli_json json;
  cli_verdict verdict; /**< of the current finding */
  const char *layer;   /**< of the current finding: what it is about */
  int code; /**< CLI_EXIT_DONE, or CLI_EXIT_FAILED: printing has failed */
} cli_doctor_report;

/** Begins a finding. Returns its JSON object, to which the caller adds facts
    for programs before cli_doctor_report_end(). */
cli_json *cli_doctor_report_begin(cli_doctor_report *report,
                                  cli_verdict verdict, const char *layer);
/** Ends the finding. Prints `said`, its text for people, and frees it. `advice`
    follows it, unless it is NULL. */
void cli_doctor_report_end(cli_doctor_report *report, cli_text *said,
                           const char *advice);

/** Prints the JSON object if there is one, frees the report, and returns the
    exit code. */
int cli_doctor_report_close(cli_doctor_report *report);

#endif
