/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/output/error_report.h"
#include "cli/session/session_messages.h"

/* The library's text is "HOST:PORT: reason". A reason that says only that the
   connection is lost is not repeated. */
void cli_session_say_connection_lost(const cli_session *s, cli_text *out)
{
  const char *text;
  int err = lk_client_last_error(s->client, &text);
  const char *colon = strstr(text, ": ");
  size_t server_len = colon == NULL ? strlen(text) : (size_t)(colon - text);
  const char *reason = colon == NULL ? NULL : colon + strlen(": ");

  cli_text_puts(out, "connection to ");
  cli_text_add_printable(out, lk_bytes_of(text, server_len));
  cli_text_puts(out, " lost");
  if (reason == NULL ||
      strcmp(reason, lk_error_text(LK_ERR_CONNECTION_LOSS)) == 0)
    return;
  /* The text of LK_ERR_REFUSED says "without a reply". */
  if (err == LK_ERR_REFUSED)
    reason = "the server closed the connection";
  cli_text_puts(out, ": ");
  cli_text_add_printable(out, lk_text(reason));
}

int cli_session_error(const cli_session *s, int err)
{
  /* Without --auth-file, there are no credentials that can be wrong. */
  return err == LK_ERR_AUTH_FAILED && s->options->auth_file == NULL
             ? LK_ERR_AUTH_REQUIRED
             : err;
}

/* The library's text is "HOST:PORT: reason". A reason that begins with "SASL"
   says which step of SASL failed. */
static void say_auth_failure(const cli_session *s, cli_text *out)
{
  const char *text = NULL;
  int err = lk_client_last_error(s->client, &text);
  const char *sasl = err == LK_ERR_AUTH_FAILED ? strstr(text, ": SASL ") : NULL;

  if (sasl != NULL)
    cli_text_add_printable(out, lk_text(sasl + strlen(": ")));
  else
    cli_text_puts(out, lk_error_text(cli_session_error(s, s->err)));
}

void cli_session_say_failure(const cli_session *s, cli_text *out)
{
  if (s->err == LK_ERR_AUTH_FAILED)
    say_auth_failure(s, out);
  else
    cli_connection_failures_say(&s->failures, lk_client_server(s->client),
                                (double)s->patience_ms / 1000, out);
}

const char *cli_session_advice(const cli_session *s)
{
  if (s->err != LK_ERR_AUTH_FAILED)
    return cli_connection_failures_advice(&s->failures);
  /* The advice for both errors of authentication begins with "; ". */
  return cli_error_advice(cli_session_error(s, s->err)) + strlen("; ");
}

void cli_session_say_chroot_command(const cli_session *s, cli_text *out)
{
  const cli_options *o = s->options;

  cli_text_puts(out, "latchkey create -p -z ");
  cli_tls_add_servers(&o->tls, o->hosts, out);
  cli_tls_add_options(&o->tls, out);
  cli_text_puts(out, " ");
  cli_text_add_printable(out, lk_text(lk_client_chroot(s->client)));
  cli_text_puts(out, " creates it");
}

void cli_session_say_no_chroot(const cli_session *s, cli_text *out)
{
  cli_text_puts(out, "the chroot ");
  cli_text_add_printable(out, lk_text(lk_client_chroot(s->client)));
  cli_text_puts(out, " does not exist; ");
  cli_session_say_chroot_command(s, out);
}

void cli_session_say_no_session(const cli_session *s, cli_text *out)
{
  cli_session_say_failure(s, out);
  cli_text_printf(out, "; %s; latchkey doctor tells more",
                  cli_session_advice(s));
}
