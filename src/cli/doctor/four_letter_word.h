/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_FOUR_LETTER_WORD_H
#define LK_CLI_DOCTOR_FOUR_LETTER_WORD_H

#include <latchkey/types.h>

/** What a server's answer to a four-letter word tells of it. */
typedef enum cli_four_letter_state {
  CLI_FOUR_LETTER_UNKNOWN,   /**< it is up; or: such words are switched off */
  CLI_FOUR_LETTER_SERVING,   /**< it serves sessions */
  CLI_FOUR_LETTER_NO_QUORUM, /**< it serves no sessions */
  CLI_FOUR_LETTER_READ_ONLY, /**< it serves those who only read */
  CLI_FOUR_LETTER_NOT_ZOOKEEPER /**< these are no words of ZooKeeper */
} cli_four_letter_state;

typedef struct cli_four_letter_reply {
  cli_four_letter_state kind;
  lk_bytes version; /**< "3.8.0"; NULL: it does not tell */
  lk_bytes mode;    /**< "leader", "standalone", …; NULL: likewise */
} cli_four_letter_reply;

/** The words worth asking, the one that tells most first; ends with NULL. */
extern const char *const cli_four_letter_words[];

/** Read an answer, whatever it is; what comes out are parts of it. */
void cli_four_letter_reply_read(cli_four_letter_reply *out, lk_bytes answer);
/** Whether the server is told not to obey the word. */
bool cli_four_letter_is_disabled(lk_bytes answer);
/** Whether `version` is known and before `major`.`minor`. */
bool cli_version_is_before(lk_bytes version, unsigned major, unsigned minor);

#endif
