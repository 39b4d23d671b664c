/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include <latchkey/client.h>

#include "cli/options/tls_options.h"
#include "cli/output/print.h"

static const char scheme[] = "tls://";

/* ---- values -------------------------------------------------------------- */

static const char *tls_option_name(cli_tls_item item)
{
  switch (item) {
  case CLI_TLS_CACERT: return "--cacert";
  case CLI_TLS_CRL: return "--crl";
  case CLI_TLS_CERT: return "--cert";
  case CLI_TLS_KEY: return "--key";
  case CLI_TLS_KEY_PASSWORD_FILE: return "--key-password-file";
  case CLI_TLS_NAME: return "--tls-name";
  case CLI_TLS_COUNT: break;
  }
  return "";
}

static const char *tls_variable_name(cli_tls_item item)
{
  switch (item) {
  case CLI_TLS_CACERT: return "LATCHKEY_TLS_CACERT";
  case CLI_TLS_CRL: return "LATCHKEY_TLS_CRL";
  case CLI_TLS_CERT: return "LATCHKEY_TLS_CERT";
  case CLI_TLS_KEY: return "LATCHKEY_TLS_KEY";
  case CLI_TLS_KEY_PASSWORD_FILE: return "LATCHKEY_TLS_KEY_PASSWORD_FILE";
  case CLI_TLS_NAME: return "LATCHKEY_TLS_NAME";
  case CLI_TLS_COUNT: break;
  }
  return "";
}

/* Whether the item's variable is ignored. If the command line gives the
   certificate, a key in the environment is not taken: it belongs to another
   certificate. A password in the environment is not taken if the command line
   gives the certificate or the key. */
static bool is_variable_ignored(const cli_tls_options *t, cli_tls_item item)
{
  bool cert = t->items[CLI_TLS_CERT] != NULL;

  return (item == CLI_TLS_KEY && cert) ||
         (item == CLI_TLS_KEY_PASSWORD_FILE &&
          (cert || t->items[CLI_TLS_KEY] != NULL));
}

/* Returns the value from the option or its variable; NULL: neither is set. */
static const char *tls_item_value(const cli_tls_options *t, cli_tls_item item)
{
  const char *value = t->items[item];

  if (value != NULL || is_variable_ignored(t, item))
    return value;
  value = getenv(tls_variable_name(item));
  return value == NULL || *value == '\0' ? NULL : value;
}

/* Returns the name of the option or variable that gives the value. Only the CAs
   have a default whose file can be missing or wrong. */
static const char *tls_item_source(const cli_tls_options *t, cli_tls_item item)
{
  if (item == CLI_TLS_CACERT && tls_item_value(t, item) == NULL)
    return "the default of --cacert";
  return t->items[item] != NULL ? tls_option_name(item)
                                : tls_variable_name(item);
}

const char *cli_tls_behind_scheme(const char *hosts)
{
  const char *text = hosts + strspn(hosts, " \t");
  size_t len = strlen(scheme);

  return strncmp(text, scheme, len) == 0 ? text + len : hosts;
}

bool cli_tls_is_selected(const cli_tls_options *t, const char *hosts)
{
  bool has_scheme = cli_tls_behind_scheme(hosts) != hosts;

  return t->selected || has_scheme;
}

lk_tls_config cli_tls_config(const cli_tls_options *t)
{
  return (lk_tls_config){
      .size = sizeof(lk_tls_config),
      .ca_file = tls_item_value(t, CLI_TLS_CACERT),
      .crl_file = t->insecure ? NULL : tls_item_value(t, CLI_TLS_CRL),
      .cert_file = tls_item_value(t, CLI_TLS_CERT),
      .key_file = tls_item_value(t, CLI_TLS_KEY),
      .password_file = tls_item_value(t, CLI_TLS_KEY_PASSWORD_FILE),
      .server_name = tls_item_value(t, CLI_TLS_NAME),
      .any_certificate = t->insecure,
  };
}

/* ---- checks -------------------------------------------------------------- */

/* Whether a certificate is given, if a key or the password of a key is given.
 */
static bool has_certificate_for_key(const cli_tls_options *t,
                                    cli_text *complaint)
{
  cli_tls_item item = tls_item_value(t, CLI_TLS_KEY) != NULL
                          ? CLI_TLS_KEY
                          : CLI_TLS_KEY_PASSWORD_FILE;

  if (tls_item_value(t, item) == NULL ||
      tls_item_value(t, CLI_TLS_CERT) != NULL)
    return true;
  cli_text_printf(complaint,
                  "%s needs a certificate: --cert or LATCHKEY_TLS_CERT",
                  tls_item_source(t, item));
  return false;
}

/* Whether the complaint `text` of lk_tls_check() is about the file `path`,
   which may be NULL. */
static bool is_about_file(const char *text, const char *path)
{
  static const char *const starts[] = {"TLS: ", "TLS: cannot read "};

  if (path == NULL)
    return false;
  for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
    size_t start_len = strlen(starts[i]);
    size_t path_len = strlen(path);

    if (strncmp(text, starts[i], start_len) == 0 &&
        strncmp(text + start_len, path, path_len) == 0 &&
        text[start_len + path_len] == ':')
      return true;
  }
  return false;
}

/* Whether the complaint `text` is about a key. The certificate can be in the
   same file, so the name of the file does not show that. */
static bool is_about_key(const char *text)
{
  return strstr(text, "has no private key") != NULL ||
         strstr(text, "has no key that can be read") != NULL;
}

/* Returns the item whose file the complaint `text` is about: the client's
   certificate, its key or the password of the key. CLI_TLS_CERT: `text` names
   none of these files. */
static cli_tls_item find_complained_item(const cli_tls_options *t,
                                         const char *text)
{
  static const cli_tls_item items[] = {CLI_TLS_CERT, CLI_TLS_KEY,
                                       CLI_TLS_KEY_PASSWORD_FILE};

  if (is_about_key(text) && is_about_file(text, tls_item_value(t, CLI_TLS_KEY)))
    return CLI_TLS_KEY;
  for (size_t i = 0; i < sizeof items / sizeof items[0]; i++)
    if (is_about_file(text, tls_item_value(t, items[i])))
      return items[i];
  return CLI_TLS_CERT;
}

/* Returns advice for a key that cannot be read, or "". */
static const char *key_advice(const cli_tls_options *t, const char *text)
{
  /* Without --key, the key was sought in the file of the certificate. */
  const char *give_key =
      tls_item_value(t, CLI_TLS_KEY) == NULL ? "; --key gives one" : "";

  if (!is_about_key(text))
    return "";
  if (strstr(text, "has no private key") != NULL)
    return give_key;
  if (tls_item_value(t, CLI_TLS_KEY_PASSWORD_FILE) != NULL)
    return "; --key-password-file must hold its password";
  if (strstr(text, "password") != NULL)
    return "; --key-password-file gives its password";
  return give_key;
}

/* Appends the complaint `text` of lk_tls_check() about `item`, with advice. */
static void complain_of_tls_file(const cli_tls_options *t, cli_tls_item item,
                                 const char *text, cli_text *complaint)
{
  size_t len = strlen("TLS: ");

  cli_text_printf(complaint, "%s: ", tls_item_source(t, item));
  cli_text_add_printable(
      complaint, lk_text(strncmp(text, "TLS: ", len) == 0 ? text + len : text));
  cli_text_puts(complaint, key_advice(t, text));
}

/* Checks the files in steps, so that the complaint can name the option: the
   CAs, the revocation lists, the certificate with its key, and then all files
   together. */
static bool check_tls_files(const cli_tls_options *t, cli_text *complaint)
{
  enum { STEP_CACERT, STEP_CRL, STEP_CERT, STEP_ALL, STEP_COUNT };
  const lk_tls_config all = cli_tls_config(t);
  /* Without --cacert and --insecure, each step needs the system's CAs. */
  const lk_tls_config trust = {.size = sizeof all,
                               .ca_file = all.ca_file,
                               .any_certificate =
                                   all.any_certificate && all.ca_file == NULL};
  lk_tls_config steps[STEP_COUNT] = {[STEP_CACERT] = trust,
                                     [STEP_CRL] = trust,
                                     [STEP_CERT] = trust,
                                     [STEP_ALL] = all};
  char text[512];
  int step = STEP_CACERT;
  int err = 0;

  steps[STEP_CRL].crl_file = all.crl_file;
  steps[STEP_CERT].cert_file = all.cert_file;
  steps[STEP_CERT].key_file = all.key_file;
  steps[STEP_CERT].password_file = all.password_file;
  while (step < STEP_COUNT &&
         (err = lk_tls_check(&steps[step], text, sizeof text)) == 0)
    step++;
  if (err == 0)
    return true;
  if (err != LK_ERR_TLS)
    cli_text_printf(complaint, "TLS: %s", lk_error_text(err));
  else if (step == STEP_CACERT)
    complain_of_tls_file(t, CLI_TLS_CACERT, text, complaint);
  else if (step == STEP_CRL)
    complain_of_tls_file(t, CLI_TLS_CRL, text, complaint);
  else
    complain_of_tls_file(t, find_complained_item(t, text), text, complaint);
  return false;
}

bool cli_tls_check(const cli_tls_options *t, const char *hosts,
                   cli_text *complaint)
{
  if (!cli_tls_is_selected(t, hosts))
    return true;
  if (lk_transport_tls() == NULL) {
    cli_text_puts(complaint, "this build of latchkey has no TLS: it was built "
                             "without OpenSSL");
    return false;
  }
  return has_certificate_for_key(t, complaint) && check_tls_files(t, complaint);
}

/* Returns the first variable that describes TLS and is set, or NULL. */
static const char *find_set_tls_variable(void)
{
  for (int i = 0; i < CLI_TLS_COUNT; i++) {
    const char *name = tls_variable_name((cli_tls_item)i);
    const char *value = getenv(name);

    if (value != NULL && *value != '\0')
      return name;
  }
  return NULL;
}

void cli_tls_warn(const cli_tls_options *t, const char *hosts, bool quiet)
{
  const char *variable = find_set_tls_variable();

  if (variable != NULL && !quiet && !cli_tls_is_selected(t, hosts))
    cli_warn("%s is set, but TLS is not selected: the connection is not "
             "encrypted; tls:// in front of the servers or --tls selects TLS",
             variable);
  if (t->insecure)
    cli_warn("--insecure: the server's certificate is not verified; an "
             "attacker on the network can read and change everything");
}

/* ---- servers ------------------------------------------------------------- */

void cli_tls_add_servers(const cli_tls_options *t, const char *hosts,
                         cli_text *out)
{
  const char *servers = cli_tls_behind_scheme(hosts);

  if (cli_tls_is_selected(t, hosts))
    cli_text_puts(out, scheme);
  cli_text_add_printable(out, lk_bytes_of(servers, strcspn(servers, "/")));
}

void cli_tls_add_options(const cli_tls_options *t, cli_text *out)
{
  for (int i = 0; i < CLI_TLS_COUNT; i++) {
    if (t->items[i] == NULL)
      continue;
    cli_text_printf(out, " %s ", tls_option_name((cli_tls_item)i));
    cli_text_add_printable(out, lk_text(t->items[i]));
  }
  if (t->insecure)
    cli_text_puts(out, " --insecure");
}

int cli_tls_hosts_each(const cli_tls_options *t, const char *hosts,
                       void (*each)(const char *host, uint16_t port, void *arg),
                       void *arg)
{
  cli_text text = {0};

  if (cli_tls_is_selected(t, hosts))
    cli_text_puts(&text, scheme);
  cli_text_puts(&text, cli_tls_behind_scheme(hosts));
  const char *whole = cli_text_end(&text);
  int err = whole == NULL ? LK_ERR_NO_MEMORY : lk_hosts_each(whole, each, arg);

  cli_text_free(&text);
  return err;
}
