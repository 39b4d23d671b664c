/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/output/error_report.h"
#include "cli/output/json.h"
#include "cli/output/line_backlog.h"
#include "cli/output/nonblocking_fd.h"
#include "cli/output/print.h"
#include "cli/output/system_clocks.h"

/* The form of all messages of this process: JSON or text. */
static bool messages_in_json;

void cli_messages_in_json(bool json)
{
  messages_in_json = json;
}

/* The messages of this process. A reader that does not read must not keep
   latchkey from its work. */
static cli_line_backlog messages;
static lk_loop *messages_loop;

void cli_messages_attach(lk_loop *loop)
{
  messages_loop = loop;
  cli_line_backlog_set_loop(&messages, loop);
}

void cli_messages_close(void)
{
  cli_line_backlog_close(&messages);
}

void cli_dropped_text(cli_text *out, size_t lines)
{
  cli_text_printf(out, "latchkey: %zu lines dropped: standard error was full\n",
                  lines);
}

void cli_dropped_json(cli_text *out, size_t lines)
{
  cli_json j = {.out = out};

  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "event", lk_text("dropped"));
  cli_json_number(&j, "lines", (int64_t)lines);
  cli_json_close(&j, '}');
  cli_text_puts(out, "\n");
}

/* The values of "event" in JSON. */
static const char notice_event[] = "notice";
static const char warning_event[] = "warning";
static const char failed_event[] = "failed";

/* A line is one write(), so that lines of several processes do not mix. An
   error cannot be reported: the report would have to go to the same descriptor.
 */
static void write_message_line(const char *line, size_t len)
{
  if (!messages.is_open)
    cli_line_backlog_init(&messages, STDERR_FILENO, messages_loop,
                          messages_in_json ? cli_dropped_json
                                           : cli_dropped_text);
  cli_line_backlog_put(&messages, lk_bytes_of(line, len));
}

static cli_json open_json_message(cli_text *out, const char *event)
{
  cli_json j = {.out = out};

  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "event", lk_text(event));
  cli_json_time(&j, "time", cli_wall_ms());
  return j;
}

static void close_json_message(cli_json *j)
{
  cli_json_close(j, '}');
  cli_text_puts(j->out, "\n");
}

void cli_failed_json(cli_text *out, const char *path_key, const char *path,
                     int code, const char *reason)
{
  cli_json j = open_json_message(out, failed_event);

  if (path != NULL)
    cli_json_text(&j, path_key, lk_text(path));
  cli_json_text(&j, "reason", lk_text(reason));
  cli_json_number(&j, "code", code);
  close_json_message(&j);
}

/* `code`: the exit code if `event` is failed_event. */
static void print_message_json(const char *event, const char *reason, int code)
{
  const char *no_path = NULL;
  cli_text line = {0};

  if (event == failed_event) {
    cli_failed_json(&line, no_path, no_path, code, reason);
  } else {
    cli_json j = open_json_message(&line, event);

    cli_json_text(&j, "reason", lk_text(reason));
    close_json_message(&j);
  }
  if (!line.failed)
    write_message_line(line.at, line.len);
  cli_text_free(&line);
}

/* Notices and warnings do not end latchkey. */
enum { NO_CODE = 0 };

static void print_message(const char *event, int code, const char *format,
                          va_list args) __attribute__((format(printf, 3, 0)));

/* A message that is longer than `text` is cut. */
static void print_message(const char *event, int code, const char *format,
                          va_list args)
{
  char text[4085];
  char line[sizeof text + 32]; /* with the words in front and a newline */

  if (vsnprintf(text, sizeof text, format, args) < 0)
    text[0] = '\0';
  if (messages_in_json) {
    print_message_json(event, text, code);
    return;
  }
  cli_text_mask_controls(text);
  int len = snprintf(line, sizeof line, "latchkey: %s%s\n",
                     event == warning_event ? "warning: " : "", text);

  write_message_line(line, (size_t)len);
}

void cli_notice(const char *format, ...)
{
  va_list args;

  va_start(args, format);
  print_message(notice_event, NO_CODE, format, args);
  va_end(args);
}

void cli_warn(const char *format, ...)
{
  va_list args;

  va_start(args, format);
  print_message(warning_event, NO_CODE, format, args);
  va_end(args);
}

int cli_fail(int code, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  print_message(failed_event, code, format, args);
  va_end(args);
  return code;
}

int cli_fail_text(int code, const char *verb, cli_text *line)
{
  const char *text = cli_text_end(line);

  if (text == NULL)
    text = lk_error_text(LK_ERR_NO_MEMORY);
  if (verb == NULL)
    cli_fail(code, "%s", text);
  else
    cli_fail(code, "%s: %s", verb, text);
  cli_text_free(line);
  return code;
}

bool cli_write_all(int fd, const cli_text *out)
{
  return cli_write_all_waiting(fd, out->at, out->len);
}

int cli_fail_to_print(int error)
{
  return cli_fail(CLI_EXIT_FAILED, "cannot write to standard output: %s",
                  strerror(error));
}

int cli_print(const cli_text *out)
{
  if (out->failed)
    return cli_fail(CLI_EXIT_FAILED, "%s", lk_error_text(LK_ERR_NO_MEMORY));
  if (!cli_write_all(STDOUT_FILENO, out))
    return cli_fail_to_print(errno);
  return CLI_EXIT_DONE;
}

int cli_fail_request(const char *verb, const char *path, int err)
{
  const char *reason_of_verb = cli_error_verb_reason(verb, err);
  int code = cli_error_exit_code(err);
  cli_text clean = {0}; /* the path in printable form */

  cli_text_add_printable(&clean, lk_text(path));
  const char *clean_path = cli_text_end(&clean);

  if (clean_path == NULL)
    clean_path = "";
  if (reason_of_verb != NULL)
    cli_fail(code, "%s %s: %s", verb, clean_path, reason_of_verb);
  else
    cli_fail(code, "%s %s: %s%s%s", verb, clean_path, cli_error_reason(err),
             cli_error_advice(err), cli_error_doctor_advice(err));
  cli_text_free(&clean);
  return code;
}
