/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/doctor/report.h"
#include "cli/output/print.h"

static const char *verdict_text(cli_verdict v)
{
  switch (v) {
  case CLI_VERDICT_OK: return "ok";
  case CLI_VERDICT_NOTE: return "note";
  case CLI_VERDICT_BROKEN: return "broken";
  }
  return "";
}

/* The JSON is also written without --json, so that callers add facts in any
   case. */
cli_json *cli_doctor_report_begin(cli_doctor_report *report,
                                  cli_verdict verdict, const char *layer)
{
  report->verdict = verdict;
  report->layer = layer;
  if (report->json.out == NULL) {
    report->json.out = &report->text;
    cli_json_open(&report->json, NULL, '{');
    cli_json_open(&report->json, "findings", '[');
  }
  cli_json_open(&report->json, NULL, '{');
  cli_json_text(&report->json, "layer", lk_text(layer));
  cli_json_text(&report->json, "verdict", lk_text(verdict_text(verdict)));
  return &report->json;
}

static void print_finding(cli_doctor_report *report, const cli_text *said,
                          const char *advice)
{
  cli_text line = {0};

  cli_text_printf(&line, "%-6s  %-11s  ", verdict_text(report->verdict),
                  report->layer);
  cli_text_add_printable(&line, lk_bytes_of(said->at, said->len));
  if (advice != NULL)
    cli_text_printf(&line, "; %s", advice);
  cli_text_puts(&line, "\n");
  line.failed = line.failed || said->failed;
  if (report->code == CLI_EXIT_DONE)
    report->code = cli_print(&line);
  cli_text_free(&line);
}

void cli_doctor_report_end(cli_doctor_report *report, cli_text *said,
                           const char *advice)
{
  cli_json_text(&report->json, "text", lk_bytes_of(said->at, said->len));
  cli_json_text(&report->json, "advice", lk_text(advice));
  cli_json_close(&report->json, '}');
  if (report->verdict == CLI_VERDICT_BROKEN)
    report->broken_count++;
  report->text.failed = report->text.failed || said->failed;
  if (!report->as_json)
    print_finding(report, said, advice);
  cli_text_free(said);
}

int cli_doctor_report_close(cli_doctor_report *report)
{
  cli_json_close(&report->json, ']');
  cli_json_text(&report->json, "state",
                lk_text(report->broken_count == 0 ? "ok" : "broken"));
  cli_json_close(&report->json, '}');
  cli_text_puts(&report->text, "\n");
  if (report->as_json)
    report->code = cli_print(&report->text);
  cli_text_free(&report->text);
  if (report->code != CLI_EXIT_DONE)
    return report->code;
  return report->broken_count > 0 ? CLI_EXIT_NO : CLI_EXIT_DONE;
}
