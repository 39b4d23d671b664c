/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <poll.h>
#include <string.h>

#include "cli/run/run.h"
#include "cli/run/runner.h"

/* `elect` runs COMMAND once for each term, as `run` does, with a new session
   and a new supervisor. Between two terms it pauses. */

enum { FIRST_PAUSE_MS = 1000, MAX_PAUSE_MS = 60 * 1000 };

typedef struct elect {
  const cli_options *options;
  cli_signals signals; /* of the first term; open from then on */
  cli_service_manager manager;
  bool has_led;
  int64_t failures; /* of COMMAND */
  int64_t pause_ms; /* the next pause */
} elect;

/* ---- pauses -------------------------------------------------------------- */

/* Returns the signal that has come and ends the wait, or 0. */
static int take_ending_signal(const cli_signals *s)
{
  cli_signal signal;

  while (cli_signals_next(s, &signal)) {
    if (signal.number == SIGTSTP)
      (void)cli_signals_stop_self();
    if (cli_signal_ends_wait(signal.number))
      return signal.number;
  }
  return 0;
}

/* Returns the signal that has ended the pause, or 0. */
static int pause_for(const cli_signals *s, int64_t ms)
{
  int64_t end = cli_boottime_ms() + ms;
  struct pollfd watched = {.fd = s->queue.fd, .events = POLLIN};
  int64_t left;
  int number = 0;

  while (number == 0 && (left = end - cli_boottime_ms()) > 0) {
    /* Without a signalfd the pending signals are looked at now and then. */
    int64_t step =
        watched.fd < 0 && left > CLI_SIGNAL_POLL_MS ? CLI_SIGNAL_POLL_MS : left;

    poll(&watched, 1, (int)step);
    number = take_ending_signal(s);
  }
  return number;
}

/* The length of a pause of `ms`: up to half is added at random, so that
   candidates whose terms end at the same time spread out. */
static int64_t lengthen_at_random(int64_t ms)
{
  uint16_t random = (uint16_t)cli_boottime_ms();

  return ms + random % (ms / 2);
}

/* Each failure doubles the pause that follows the next one. */
static int64_t draw_pause_after_failure(elect *e)
{
  int64_t ms = e->pause_ms;

  e->pause_ms = ms * 2 < MAX_PAUSE_MS ? ms * 2 : MAX_PAUSE_MS;
  return lengthen_at_random(ms);
}

/* ---- terms --------------------------------------------------------------- */

static void run_term(elect *e, cli_runner *r, const char *path, char **argv,
                     cli_process_title title)
{
  *r = (cli_runner){.options = e->options,
                    .path = path,
                    .target = &cli_lock_target,
                    .manager = &e->manager,
                    .job = {.argv = argv, .signals = e->signals}};
  cli_run_once(r, title);
  e->signals = r->job.signals;
}

static bool has_led(const cli_runner *r)
{
  return r->held_at != 0;
}

/* COMMAND was not there, or cannot be executed: this machine cannot lead. */
static bool command_is_unusable(const cli_runner *r)
{
  return r->not_started &&
         (r->code == CLI_EXIT_NOT_FOUND || r->code == CLI_EXIT_NOT_RUNNABLE);
}

/* COMMAND has ended by itself, with an error. */
static bool command_has_failed(const cli_runner *r)
{
  return r->code != CLI_EXIT_LOST && !r->revoked;
}

/* The leadership was lost or revoked: no reason for a long pause. */
static bool leadership_was_taken(const cli_runner *r)
{
  return has_led(r) && !command_has_failed(r);
}

/* Whether the term was the last one of this candidate. */
static bool was_last_term(elect *e, const cli_runner *r)
{
  if (r->resigned || command_is_unusable(r))
    return true;
  if (!has_led(r))
    return !e->has_led; /* later, the servers are awaited for ever */
  e->has_led = true;
  if (r->code == CLI_EXIT_DONE && !r->revoked)
    return true;
  if (cli_boottime_ms() - r->held_at >= MAX_PAUSE_MS)
    e->pause_ms = FIRST_PAUSE_MS;
  if (!command_has_failed(r))
    return false;
  e->failures++;
  return e->options->restarts >= 0 && e->failures > e->options->restarts;
}

/* Tells why this candidate does not lead any more, and when it takes part
   again. */
static void report_pause(const elect *e, const cli_runner *r, int64_t ms)
{
  int seconds = (int)(ms / 1000), tenths = (int)(ms % 1000 / 100);
  cli_text text = {0};

  if (!has_led(r))
    cli_text_printf(&text, "%s: trying again in %d.%d s", r->path, seconds,
                    tenths);
  else
    cli_text_printf(&text,
                    "%s: the term has ended with code %d; taking part again in "
                    "%d.%d s",
                    r->path, r->code, seconds, tenths);
  const char *line = cli_text_end(&text);

  cli_service_manager_status(&e->manager, line);
  if (!e->options->quiet && line != NULL)
    cli_notice("%s", line);
  cli_text_free(&text);
}

/* A signal ends the pause as it ends the wait for the lock. */
static void end_by_signal(const elect *e, cli_runner *r, int number)
{
  r->code = CLI_EXIT_SIGNAL + number;
  r->died_of = cli_signal_ends_loops(number) ? number : 0;
  if (!e->options->quiet)
    cli_notice("%s: ended by SIG%s while waiting", r->path,
               cli_signal_name(number));
}

/* Returns the exit code. */
static int run_terms(elect *e, const char *path, char **argv,
                     cli_process_title title)
{
  cli_runner r;

  for (;;) {
    run_term(e, &r, path, argv, title);
    if (was_last_term(e, &r))
      break;
    int64_t ms = leadership_was_taken(&r) ? lengthen_at_random(FIRST_PAUSE_MS)
                                          : draw_pause_after_failure(e);

    report_pause(e, &r, ms);
    int number = pause_for(&e->signals, ms);

    if (number != 0) {
      end_by_signal(e, &r, number);
      break;
    }
  }
  cli_run_die_if_signalled(&r);
  return r.code;
}

/* A pipe, as of the shell's <(...), has the identities once, and each term
   needs them. Returns 0, or the exit code after the error was reported. */
static int keep_identities(cli_options *o, cli_auth_file *identities)
{
  cli_text complaint = {0};

  if (!cli_auth_file_keep(identities, o->auth_file, &complaint)) {
    const char *line = cli_text_end(&complaint);

    (void)cli_run_refuse(o,
                         line == NULL ? lk_error_text(LK_ERR_NO_MEMORY) : line);
    cli_text_free(&complaint);
    return CLI_EXIT_FAILED;
  }
  if (identities->at != NULL)
    o->auth_pipe = identities;
  return 0;
}

int cli_elect(const cli_options *o, char **operands, cli_process_title title)
{
  cli_options options = *o;
  cli_command_line line = {0};
  cli_auth_file identities = {.name = NULL};

  if (!o->layout_given)
    options.layout = LK_LAYOUT_LATCH;
  int code =
      cli_run_check(&options, "elect", &cli_lock_target, operands, &line);

  if (code == 0)
    code = keep_identities(&options, &identities);
  if (code == 0) {
    elect e = {.options = &options, .pause_ms = FIRST_PAUSE_MS};

    cli_run_open_manager(&e.manager, o);
    code = run_terms(&e, operands[0], line.argv, title);
    cli_service_manager_close(&e.manager);
  }
  cli_auth_file_free(&identities);
  cli_command_line_free(&line);
  return code;
}
