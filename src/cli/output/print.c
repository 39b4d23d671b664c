/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/error_report.h"
#include "cli/output/json.h"
#include "cli/output/print.h"
#include "cli/system_clocks.h"

/* --json was given: it selects the form of all messages of this process. */
static bool as_json;

void cli_print_as_json(bool yes)
{
  as_json = yes;
}

/* Writes a line by one write(), so that lines of several processes do not mix.
   An error cannot be reported: the report would have to go to the same
   descriptor. */
static void write_message_line(const char *line, size_t len)
{
  ssize_t n = write(STDERR_FILENO, line, len);

  (void)n;
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

void cli_failed_json(cli_text *out, const char *lock, int code,
                     const char *reason)
{
  cli_json j = open_json_message(out, "failed");

  if (lock != NULL)
    cli_json_text(&j, "lock", lk_text(lock));
  cli_json_text(&j, "reason", lk_text(reason));
  cli_json_number(&j, "code", code);
  close_json_message(&j);
}

static void print_message_json(const char *event, const char *reason, int code)
{
  cli_text line = {0};

  if (strcmp(event, "failed") == 0) {
    cli_failed_json(&line, NULL, code, reason);
  } else {
    cli_json j = open_json_message(&line, event);

    cli_json_text(&j, "reason", lk_text(reason));
    close_json_message(&j);
  }
  if (!line.failed)
    write_message_line(line.at, line.len);
  cli_text_free(&line);
}

static void print_message(const char *event, int code, const char *format,
                          va_list args) __attribute__((format(printf, 3, 0)));

static void print_message(const char *event, int code, const char *format,
                          va_list args)
{
  char line[4096] = "latchkey: ";
  size_t start = strlen(line);

  if (!as_json && strcmp(event, "warning") == 0)
    strcpy(line + start, "warning: ");
  size_t len = strlen(line);
  int more = vsnprintf(line + len, sizeof line - len - 1, format, args);

  if (more > 0)
    len += (size_t)more;
  if (len > sizeof line - 2)
    len = sizeof line - 2;
  if (as_json) {
    print_message_json(event, line + start, code);
    return;
  }
  line[len++] = '\n';
  write_message_line(line, len);
}

void cli_notice(const char *format, ...)
{
  va_list args;

  va_start(args, format);
  print_message("notice", 0, format, args);
  va_end(args);
}

void cli_warn(const char *format, ...)
{
  va_list args;

  va_start(args, format);
  print_message("warning", 0, format, args);
  va_end(args);
}

int cli_fail(int code, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  print_message("failed", code, format, args);
  va_end(args);
  return code;
}

int cli_fail_text(int code, const char *verb, cli_text *line)
{
  const char *text = cli_text_end(line);

  cli_fail(code, "%s%s%s", verb == NULL ? "" : verb, verb == NULL ? "" : ": ",
           text == NULL ? lk_error_text(LK_ERR_NO_MEMORY) : text);
  cli_text_free(line);
  return code;
}

bool cli_write_all(int fd, const cli_text *out)
{
  size_t done = 0;

  while (done < out->len) {
    ssize_t n = write(fd, out->at + done, out->len - done);

    if (n < 0 && errno != EINTR)
      return false;
    done += n < 0 ? 0 : (size_t)n;
  }
  return true;
}

int cli_print(const cli_text *out)
{
  if (out->failed)
    return cli_fail(CLI_EXIT_FAILED, "%s", lk_error_text(LK_ERR_NO_MEMORY));
  if (!cli_write_all(STDOUT_FILENO, out))
    return cli_fail(CLI_EXIT_FAILED, "cannot write to standard output: %s",
                    strerror(errno));
  return CLI_EXIT_DONE;
}

int cli_fail_request(const char *verb, const char *path, int err)
{
  const char *reason_of_verb = cli_error_verb_reason(verb, err);
  cli_text clean = {0}; /* the path in printable form */

  cli_text_add_printable(&clean, lk_text(path));
  const char *text = cli_text_end(&clean);

  if (text == NULL)
    text = "";
  int code = reason_of_verb != NULL
                 ? cli_fail(cli_error_exit_code(err), "%s %s: %s", verb, text,
                            reason_of_verb)
                 : cli_fail(cli_error_exit_code(err), "%s %s: %s%s%s", verb,
                            text, cli_error_reason(err), cli_error_advice(err),
                            cli_error_doctor_advice(err));

  cli_text_free(&clean);
  return code;
}
