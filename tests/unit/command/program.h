/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_COMMAND_PROGRAM_H
#define LK_UNIT_COMMAND_PROGRAM_H

#include <sys/types.h>

#include "unit/fake/loopback.h"

/**
 * @file
 * The command `latchkey` with the model server on loopback. Each command line
 * runs in a child process, with faults of the server or without memory.
 */

/** What goes wrong once. */
typedef enum program_fault {
  PROGRAM_NO_FAULT,
  PROGRAM_NO_MEMORY,    /**< an allocation fails */
  PROGRAM_BREAK_BEFORE, /**< the connection breaks, and the request is lost */
  PROGRAM_BREAK_AFTER,  /**< the connection breaks, and the reply is lost */
  PROGRAM_REFUSE,       /**< the request is refused with LK_ERR_NO_AUTH */
} program_fault;

enum { PROGRAM_OUTPUT = 64 * 1024 };

/** A server, and one command line at a time. */
typedef struct program {
  loopback loopback; /**< the first member: serve() converts its pointer */

  program_fault fault;
  /** The allocation (each process counts its own) or the request (without pings
      and closeSession) that has the fault; counts from 1. */
  unsigned fault_at;

  /* The command line that has ended. */
  bool had_fault;
  int code; /**< exit code; -N: it died of signal N */
  char out[PROGRAM_OUTPUT];
  char err[PROGRAM_OUTPUT];

  /* Of program.c. */
  unsigned requests;
  bool *allocation_failed; /**< in shared memory */
  pid_t child;
  int out_fd, err_fd; /**< files without a name */
} program;

void program_start(program *p);
void program_stop(program *p);

/** Start `latchkey WORD...`; `words` ends with NULL. */
void program_begin(program *p, const char *const *words);
/** Wait until it has printed exactly this. */
void program_await_output(const program *p, const char *text);
/** Wait until it has ended. Returns the exit code. */
int program_end(program *p);
/** Both. */
int program_run(program *p, const char *const *words);

/** For loops that wait for something: how often to look, with this pause. */
enum { PROGRAM_TRIES = 1000 };
void program_pause(void);

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { COMMAND_LINE_WORDS = 10 };

/** A command line, and what it does. */
typedef struct command_line {
  const char *words[COMMAND_LINE_WORDS + 1];
  int code;
  const char *out; /**< NULL: not always the same */
} command_line;

/** Whether the last command line has this exit code and output. Otherwise
    prints what it did. */
bool program_did(const program *p, const command_line *line);
void program_show(const program *p, const command_line *line);

/** Run each command line with the fault at each of its allocations or requests,
    every time with a new server, whose nodes `create_nodes` makes. `check` is
    called when it has ended. */
void program_sweep(const command_line *lines, size_t count, program_fault fault,
                   void (*create_nodes)(model_server *s),
                   void (*check)(const program *p, const command_line *line));

#endif
