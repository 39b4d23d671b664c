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
cli_json *cli_doctor_report_begin(cli_doctor_report *f, cli_verdict verdict,
                                  const char *layer)
{
  f->verdict = verdict;
  f->layer = layer;
  if (f->json.out == NULL) {
    f->json.out = &f->text;
    cli_json_open(&f->json, NULL, '{');
    cli_json_open(&f->json, "findings", '[');
  }
  cli_json_open(&f->json, NULL, '{');
  cli_json_text(&f->json, "layer", lk_text(layer));
  cli_json_text(&f->json, "verdict", lk_text(verdict_text(verdict)));
  return &f->json;
}

static void print_finding(cli_doctor_report *f, const cli_text *said,
                          const char *advice)
{
  cli_text line = {0};

  cli_text_printf(&line, "%-6s  %-11s  ", verdict_text(f->verdict), f->layer);
  cli_text_add_printable(&line, lk_bytes_of(said->at, said->len));
  cli_text_printf(&line, "%s%s\n", advice == NULL ? "" : "; ",
                  advice == NULL ? "" : advice);
  line.failed = line.failed || said->failed;
  if (f->code == CLI_EXIT_DONE)
    f->code = cli_print(&line);
  cli_text_free(&line);
}

void cli_doctor_report_end(cli_doctor_report *f, cli_text *said,
                           const char *advice)
{
  cli_json_text(&f->json, "text", lk_bytes_of(said->at, said->len));
  cli_json_text(&f->json, "advice", lk_text(advice));
  cli_json_close(&f->json, '}');
  f->broken += f->verdict == CLI_VERDICT_BROKEN ? 1 : 0;
  f->text.failed = f->text.failed || said->failed;
  if (!f->as_json)
    print_finding(f, said, advice);
  cli_text_free(said);
}

int cli_doctor_report_close(cli_doctor_report *f)
{
  cli_json_close(&f->json, ']');
  cli_json_text(&f->json, "state", lk_text(f->broken == 0 ? "ok" : "broken"));
  cli_json_close(&f->json, '}');
  cli_text_puts(&f->text, "\n");
  if (f->as_json)
    f->code = cli_print(&f->text);
  cli_text_free(&f->text);
  return f->code == CLI_EXIT_DONE && f->broken > 0 ? CLI_EXIT_NO : f->code;
}
