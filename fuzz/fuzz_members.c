/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * The text of an ensemble's configuration.
 *
 * Oracle: each part that is returned lies inside the text, in its order, and
 * the iteration ends.
 */

#include "target.h"

#include <latchkey/client.h>

static bool within(lk_bytes part, const char *from, const char *to)
{
  const char *at = part.at;

  return part.len == 0 || (at >= from && at + part.len <= to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  char *text = malloc(size == 0 ? 1 : size);
  int64_t version;
  lk_server_entry m;

  must(text != NULL);
  if (size > 0)
    memcpy(text, data, size);
  lk_bytes left = lk_bytes_of(text, size);

  for (;;) {
    const char *from = left.at;
    int result = lk_config_next(&left, &m);

    must(left.len == 0 || (const char *)left.at + left.len == text + size);
    if (result == 0)
      break;
    must((const char *)left.at > from);
    must(result == 1 || result == LK_ERR_BAD_ARGUMENT);
    if (result == 1)
      must(m.id >= 0 && m.peers.len > 0 && within(m.peers, from, left.at) &&
           within(m.client_host, from, left.at));
  }
  (void)lk_config_version(lk_bytes_of(text, size), &version);
  free(text);
  return 0;
}
