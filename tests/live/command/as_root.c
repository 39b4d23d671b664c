/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   as_root COMMAND [ARGUMENT...]
 *
 * Executes COMMAND as root, if this program is set-user-ID root. As sudo(8)
 * does, it sets all user ids, so that the user who has started it may not
 * signal COMMAND.
 */
#include "config.h"

#include <unistd.h>

int main(int argc, char **argv)
{
  if (argc > 1 && setuid(0) == 0)
    execvp(argv[1], argv + 1);
  return 127;
}
