/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OPTIONS_OPTIONS_H
#define LK_CLI_OPTIONS_OPTIONS_H

/**
 * @file
 * The values of all options, the parser of the command line, and the options
 * that verbs share.
 */

#include <latchkey/lease.h>
#include <latchkey/lock.h>

#include "cli/options/on_lost.h"
#include "cli/options/tls_options.h"
#include "cli/output/text.h"

/** Limit of the locks of -l. */
enum { CLI_MAX_EXTRA_LOCKS = 64 };

/** The kind of LOCK: a mutex, or a side of a read-write lock. */
typedef enum cli_side {
  CLI_SIDE_MUTEX,
  CLI_SIDE_READ,
  CLI_SIDE_WRITE
} cli_side;

/** A node_version that every version of a node matches. */
enum { CLI_ANY_VERSION = -1 };

/** The values of all options. Texts are borrowed from the command line. */
typedef struct cli_options {
  bool help;
  bool version;
  bool verbose;
  bool quiet;
  bool json;
  /* the session */
  const char *hosts;
  int64_t session_timeout_ms;
  int64_t connect_timeout_ms;
  int64_t max_request;   /**< --max-request, bytes; 0: not given */
  int64_t max_reply;     /**< --max-reply, bytes; 0: not given */
  const char *auth_file; /**< NULL: none */
  const struct cli_auth_file *auth_pipe; /**< NULL, or what was read from
                                            `auth_file`: it can be read only
                                            once */
  cli_tls_options tls; /**< without the values from the environment */
  /* run */
  int64_t wait_ms;         /**< -w; -1: not given, no limit; 0: -n, no wait */
  bool nonblock;           /**< -n was given; it overrides -w */
  int conflict_code;       /**< exit code if the lock is not acquired */
  const char *command;     /**< the STRING of -c; NULL: none */
  const char *label;       /**< NULL: host, process id, start time */
  const char *member_name; /**< of join; NULL: random */
  const char *acl;         /**< for cli_acl_read() */
  cli_on_lost on_lost;
  int64_t kill_after_ms; /**< 0: not given, a sixth of the session timeout */
  int64_t min_hold_ms;   /**< 0: the lock is released when COMMAND ends */
  int64_t max_hold_ms;   /**< 0: no limit */
  lk_assurance assurance;
  bool foreground;
  int events_fd;      /**< descriptor for JSON events; -1: not given */
  bool single_node;   /**< LOCK is one node, without a queue: --layout single */
  lk_layout layout;   /**< with `single_node` it has no effect, and is
                         LK_LAYOUT_CURATOR, which lk_single_new() requires */
  const char *prefix; /**< of the node names; NULL: the default of the layout */
  cli_side side;
  const char *extra_locks[CLI_MAX_EXTRA_LOCKS]; /**< the locks of -l: "PATH",
                                                   "x:PATH" or "s:PATH" */
  size_t extra_count;                           /**< number of `extra_locks` */
  int64_t restarts;        /**< of elect; -1: not given, any number */
  bool layout_given;       /**< --layout was given */
  int32_t permits;         /**< -p; 0: not a semaphore */
  int32_t permits_to_take; /**< --take; 0: not given, one permit */
  /* nodes */
  int32_t node_version; /**< -V; CLI_ANY_VERSION: not given */
  bool ephemeral;
  bool sequential;
  bool container;
  int64_t ttl_ms; /**< 0: no TTL */
  bool parents;
  bool recursive;
  bool children;  /**< watch --children */
  bool follow;    /**< members -w */
  bool details;   /**< ls -l */
  bool read_only; /**< a read-only server is accepted */
  int64_t count;  /**< exit after so many events, reports or runs of COMMAND;
                       0: not given, no limit */
} cli_options;

/** One option. An alias follows its option and has the same `take` and no
    `help`. */
typedef struct cli_option {
  char letter;      /**< '\0': only the long form */
  const char *name; /**< NULL: only the letter */
  const char *arg;  /**< name of the argument in the help; NULL: no argument */
  const char *help;
  /** Stores `value`; returns a complaint about it, or NULL. */
  const char *(*take)(cli_options *o, const char *value);
} cli_option;

/** Lists of options; each ends with an entry without `take`. */
extern const cli_option cli_options_common[];       /* -h, --help */
extern const cli_option cli_options_version[];      /* -V, --version */
extern const cli_option cli_options_long_version[]; /* --version */
extern const cli_option cli_options_session[];
extern const cli_option cli_options_json[];
extern const cli_option cli_options_layout[];
extern const cli_option cli_options_run[];     /* of run: the lock */
extern const cli_option cli_options_job[];     /* of run and elect: the lease */
extern const cli_option cli_options_command[]; /* of these and join: COMMAND */
extern const cli_option cli_options_join[];
extern const cli_option cli_options_elect[];
extern const cli_option cli_options_wait[];
extern const cli_option cli_options_write[]; /* -V VERSION, --node-version */
extern const cli_option cli_options_delete[];
extern const cli_option cli_options_create[];
extern const cli_option cli_options_ls[];
extern const cli_option cli_options_read[];
extern const cli_option cli_options_watch[];
extern const cli_option cli_options_members[];

enum { CLI_MAX_LISTS = 7 };
typedef const cli_option *cli_option_lists[CLI_MAX_LISTS];

/** The options that may stand before any verb. */
extern const cli_option_lists cli_options_general;

/** Sets the defaults, and the values from the environment. */
void cli_options_init(cli_options *o);

/**
 * Parses the options at the start of `argv`; argv[0] is a name. Returns the
 * index of the first operand. `complaint` stays empty, or gets one line.
 */
int cli_options_take(cli_options *o, const cli_option_lists lists, int argc,
                     char **argv, cli_text *complaint);

/**
 * Parses options before, between and after operands; "--" ends the options. The
 * operands move to argv[1] and after, followed by NULL. Returns their number.
 * `complaint` stays empty, or gets one line.
 */
int cli_options_take_anywhere(cli_options *o, const cli_option_lists lists,
                              int argc, char **argv, cli_text *complaint);

/**
 * Parses the options of a verb whose operands are PATH and, if given, COMMAND.
 * If COMMAND follows, all options stand before PATH; "--" may stand between
 * both. Otherwise options may also stand after PATH. Returns the index of PATH;
 * the operands end with NULL. `complaint` stays empty, or gets one line.
 */
int cli_options_take_before_command(cli_options *o,
                                    const cli_option_lists lists, int argc,
                                    char **argv, cli_text *complaint);

/** Appends the help text of the options in `lists`. */
void cli_options_help(const cli_option_lists lists, cli_text *out);

#endif
