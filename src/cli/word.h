/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_WORD_H
#define LK_CLI_WORD_H

#include <latchkey/types.h>

/** What a server's answer to a four-letter word tells of it. */
typedef enum cli_word_kind {
  CLI_WORD_NOTHING,   /**< it is up; or: such words are switched off */
  CLI_WORD_SERVES,    /**< it serves sessions */
  CLI_WORD_NO_QUORUM, /**< it serves nobody */
  CLI_WORD_READ_ONLY, /**< it serves those who only read */
  CLI_WORD_STRANGE    /**< these are no words of ZooKeeper */
} cli_word_kind;

typedef struct cli_word {
  cli_word_kind kind;
  lk_bytes version; /**< "3.8.0"; NULL: it does not tell */
  lk_bytes mode;    /**< "leader", "standalone", …; NULL: likewise */
} cli_word;

/** The words worth asking, the one that tells most first; ends with NULL. */
extern const char *const cli_words[];

/** Read an answer, whatever it is; what comes out are parts of it. */
void cli_word_read(cli_word *out, lk_bytes answer);
/** Whether the server is told not to obey the word. */
bool cli_word_off(lk_bytes answer);
/** Whether `version` is known and before `major`.`minor`. */
bool cli_word_before(lk_bytes version, unsigned major, unsigned minor);

#endif
