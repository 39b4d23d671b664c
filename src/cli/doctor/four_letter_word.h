/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_FOUR_LETTER_WORD_H
#define LK_CLI_DOCTOR_FOUR_LETTER_WORD_H

#include <latchkey/types.h>

/** The state that a server shows in its reply to a four-letter word. */
typedef enum cli_four_letter_state {
  CLI_FOUR_LETTER_UNKNOWN,      /**< the server runs; its reply does not show
                                   whether it serves */
  CLI_FOUR_LETTER_SERVING,      /**< the server accepts sessions */
  CLI_FOUR_LETTER_NO_QUORUM,    /**< the server accepts no sessions */
  CLI_FOUR_LETTER_READ_ONLY,    /**< the server accepts read-only sessions */
  CLI_FOUR_LETTER_NOT_ZOOKEEPER /**< the reply is not ZooKeeper's */
} cli_four_letter_state;

typedef struct cli_four_letter_reply {
  cli_four_letter_state state;
  const char *software; /**< "ZooKeeper", or the name of other software with its
                             protocol; NULL: it is not known */
  lk_bytes version; /**< as in "3.8.0"; its `at` is NULL if `software` is */
  lk_bytes mode;    /**< as in "leader" or "standalone"; its `at` is NULL if it
                       is not known */
} cli_four_letter_reply;

/** The four-letter words to send, the most informative first; ends with
    NULL. */
extern const char *const cli_four_letter_words[];

/** Parses the reply `text`, which may hold any bytes. `out` points into it. */
void cli_four_letter_reply_read(cli_four_letter_reply *out, lk_bytes text);
/** Whether the reply says that the word is not in the server's whitelist. */
bool cli_four_letter_is_disabled(lk_bytes text);
/** Whether `version` is before `other`, as "3.5.8" is before "3.5.10". false as
    well if numbers are missing that would decide it. */
bool cli_version_is_before(lk_bytes version, lk_bytes other);

#endif
