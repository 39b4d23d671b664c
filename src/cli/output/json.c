/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>

#include "cli/output/json.h"

static void add_quoted(cli_text *out, lk_bytes b)
{
  const unsigned char *s = b.at;
  const unsigned char *end = s + b.len;

  cli_text_puts(out, "\"");
  while (s < end) {
    size_t len = cli_utf8_char_len(lk_bytes_of(s, (size_t)(end - s)));

    if (len == 0) {
      cli_text_puts(out, "\\ufffd");
      s++;
      continue;
    }
    unsigned code;

    if (*s == '"' || *s == '\\')
      cli_text_printf(out, "\\%c", *s);
    else if (cli_utf8_is_control(s, len, &code))
      cli_text_printf(out, "\\u%04x", code);
    else
      cli_text_add(out, s, len);
    s += len;
  }
  cli_text_puts(out, "\"");
}

static void begin_member(cli_json *j, const char *key)
{
  if (j->comma)
    cli_text_puts(j->out, ",");
  j->comma = true;
  if (key == NULL)
    return;
  add_quoted(j->out, lk_text(key));
  cli_text_puts(j->out, ":");
}

void cli_json_open(cli_json *j, const char *key, char bracket)
{
  begin_member(j, key);
  cli_text_add(j->out, &bracket, 1);
  j->comma = false;
}

void cli_json_close(cli_json *j, char bracket)
{
  cli_text_add(j->out, &bracket, 1);
  j->comma = true;
}

void cli_json_text(cli_json *j, const char *key, lk_bytes text)
{
  begin_member(j, key);
  if (text.at == NULL)
    cli_text_puts(j->out, "null");
  else
    add_quoted(j->out, text);
}

void cli_json_number(cli_json *j, const char *key, int64_t n)
{
  begin_member(j, key);
  cli_text_printf(j->out, "%" PRId64, n);
}

void cli_json_bool(cli_json *j, const char *key, bool yes)
{
  begin_member(j, key);
  cli_text_puts(j->out, yes ? "true" : "false");
}

void cli_json_uint64(cli_json *j, const char *key, uint64_t n)
{
  begin_member(j, key);
  cli_text_printf(j->out, "\"%" PRIu64 "\"", n);
}

void cli_json_hex(cli_json *j, const char *key, uint64_t n)
{
  begin_member(j, key);
  cli_text_printf(j->out, "\"0x%" PRIx64 "\"", n);
}

void cli_json_time(cli_json *j, const char *key, int64_t ms)
{
  begin_member(j, key);
  cli_text_puts(j->out, "\"");
  cli_text_time(j->out, ms);
  cli_text_puts(j->out, "\"");
}

void cli_json_data(cli_json *j, const char *key, lk_bytes data)
{
  if (cli_utf8_ok(data)) {
    cli_json_text(j, key, data);
    return;
  }
  /* This name, in place of `key`, shows that the value is encoded. */
  begin_member(j, "data_base64");
  cli_text_puts(j->out, "\"");
  cli_text_base64(j->out, data);
  cli_text_puts(j->out, "\"");
}
