/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_ASK_H
#define LK_CLI_ASK_H

#include "cli/link.h"

/**
 * A verb at work: a session, one question at a time, and what it prints.
 */
typedef struct cli_ask {
  const cli_options *options;
  const char *verb;
  const char *path;
  cli_link link;
  cli_text out; /**< for standard output */
  bool done;    /**< the question has been answered */
  int err;      /**< the answer */
} cli_ask;

/** Begin to connect. False, with one line in `complaint`: it cannot even begin;
    there is nothing to close. */
bool cli_ask_begin(cli_ask *a, const cli_options *o, const char *verb,
                   const char *path, cli_text *complaint);
/** Connect. False once it has said why not: the exit code is CLI_FAILED, and
    there is nothing to close. */
bool cli_ask_open(cli_ask *a, const cli_options *o, const char *verb,
                  const char *path);
/** The options for a request. */
lk_call cli_ask_call(const cli_ask *a, bool repeat);
/** Take note of an answer; for callbacks. */
void cli_ask_answer(cli_ask *a, int err);
/** Wait for the answer; `err` is what the request returned. Gives the error. */
int cli_ask_wait(cli_ask *a, int err);
/** Give everything back without a word. */
void cli_ask_free(cli_ask *a);
/** Print and close; `err` is complained about. Gives the exit code. */
int cli_ask_close(cli_ask *a, int err);

#endif
