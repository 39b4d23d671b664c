/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OUTPUT_EXIT_CODE_H
#define LK_CLI_OUTPUT_EXIT_CODE_H

/** Exit codes, as flock(1) and env(1) have them. */
enum cli_exit_code {
  CLI_EXIT_DONE = 0,
  CLI_EXIT_NO = 1,             /**< no such node, or the lock is held */
  CLI_EXIT_LOST = 123,         /**< while COMMAND ran, the lock was lost, or
                                    --on-lost or --max-hold acted */
  CLI_EXIT_BUSY = 124,         /**< the lock was not obtained in time */
  CLI_EXIT_FAILED = 125,       /**< latchkey itself failed */
  CLI_EXIT_NOT_RUNNABLE = 126, /**< COMMAND was found, but cannot be executed */
  CLI_EXIT_NOT_FOUND = 127,    /**< COMMAND was not found */
  CLI_EXIT_SIGNAL = 128        /**< plus the number of a signal */
};

#endif
