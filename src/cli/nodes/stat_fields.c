/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>

#include "cli/nodes/stat_fields.h"

static void show_time(cli_text *out, const char *name, int64_t ms)
{
  cli_text_printf(out, "%s ", name);
  cli_text_time(out, ms);
  cli_text_puts(out, "\n");
}

void cli_stat_fields_text(cli_text *out, const lk_stat *s)
{
  cli_text_printf(out, "czxid %" PRIu64 "\n", (uint64_t)s->czxid);
  cli_text_printf(out, "mzxid %" PRIu64 "\n", (uint64_t)s->mzxid);
  cli_text_printf(out, "pzxid %" PRIu64 "\n", (uint64_t)s->pzxid);
  show_time(out, "ctime", s->ctime);
  show_time(out, "mtime", s->mtime);
  cli_text_printf(out, "version %" PRId32 "\n", s->version);
  cli_text_printf(out, "cversion %" PRId32 "\n", s->cversion);
  cli_text_printf(out, "aversion %" PRId32 "\n", s->aversion);
  cli_text_printf(out, "ephemeral_owner 0x%" PRIx64 "\n",
                  (uint64_t)s->ephemeral_owner);
  cli_text_printf(out, "data_length %" PRId32 "\n", s->data_length);
  cli_text_printf(out, "num_children %" PRId32 "\n", s->num_children);
}

void cli_stat_fields_json(cli_json *j, const lk_stat *s)
{
  cli_json_uint64(j, "czxid", (uint64_t)s->czxid);
  cli_json_uint64(j, "mzxid", (uint64_t)s->mzxid);
  cli_json_uint64(j, "pzxid", (uint64_t)s->pzxid);
  cli_json_time(j, "ctime", s->ctime);
  cli_json_time(j, "mtime", s->mtime);
  cli_json_number(j, "version", s->version);
  cli_json_number(j, "cversion", s->cversion);
  cli_json_number(j, "aversion", s->aversion);
  cli_json_hex(j, "ephemeral_owner", (uint64_t)s->ephemeral_owner);
  cli_json_number(j, "data_length", s->data_length);
  cli_json_number(j, "num_children", s->num_children);
}
