/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <unistd.h>

#include "cli/nodes/node_data.h"
#include "cli/options/number.h"
#include "cli/output/print.h"

bool cli_node_data_read(const char *word, cli_text *out)
{
  char bytes[16384];
  ssize_t n = 1;

  if (word == NULL)
    return true;
  if (strcmp(word, "-") != 0) {
    cli_text_puts(out, word);
  } else {
    while (n != 0 && out->len < CLI_MOST_REQUEST_BYTES) {
      n = read(STDIN_FILENO, bytes, sizeof bytes);
      if (n > 0)
        cli_text_add(out, bytes, (size_t)n);
      if (n < 0 && errno != EINTR) {
        cli_fail(CLI_EXIT_FAILED, "cannot read standard input: %s",
                 strerror(errno));
        return false;
      }
    }
  }
  if (out->failed)
    cli_fail(CLI_EXIT_FAILED, "%s", lk_error_text(LK_ERR_NO_MEMORY));
  return !out->failed;
}

lk_bytes cli_node_data_bytes(const cli_text *data)
{
  return lk_bytes_of(data->at == NULL ? "" : data->at, data->len);
}
