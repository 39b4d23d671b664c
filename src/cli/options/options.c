/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>

#include "cli/options/node_path.h"
#include "cli/options/number.h"
#include "cli/options/options.h"
#include "cli/options/size_limit.h"
#include "cli/output/exit_code.h"

enum { SESSION_TIMEOUT_MS = 30000, CONNECT_TIMEOUT_MS = 10000 };

void cli_options_init(cli_options *o)
{
  const char *hosts = getenv("LATCHKEY_ZK");

  memset(o, 0, sizeof *o);
  o->hosts = hosts != NULL && *hosts != '\0' ? hosts : "127.0.0.1:2181";
  o->session_timeout_ms = SESSION_TIMEOUT_MS;
  o->connect_timeout_ms = CONNECT_TIMEOUT_MS;
  o->wait_ms = -1;  /* no limit */
  o->restarts = -1; /* no limit */
  o->conflict_code = CLI_EXIT_BUSY;
  o->acl = "open";
  /* Only the foreground process group can read from the terminal. */
  o->foreground = isatty(STDIN_FILENO) != 0;
  o->events_fd = -1; /* not given */
  o->node_version = CLI_ANY_VERSION;
}

/* Defines the function of an option without an argument. The option sets
   `member` to true. */
#define FLAG(member)                                                  \
  static const char *take_##member(cli_options *o, const char *value) \
  {                                                                   \
    (void)value;                                                      \
    o->member = true;                                                 \
    return NULL;                                                      \
  }
FLAG(help)
FLAG(version)
FLAG(verbose)
FLAG(json)

/* Defines the function of an option whose text is checked later. */
#define TEXT(member)                                                  \
  static const char *take_##member(cli_options *o, const char *value) \
  {                                                                   \
    o->member = value;                                                \
    return NULL;                                                      \
  }
TEXT(hosts)
TEXT(auth_file)

/* Defines the function of an option that names a file for TLS. Each option of
   TLS selects TLS. */
#define TLS_FILE(name, item)                                        \
  static const char *take_##name(cli_options *o, const char *value) \
  {                                                                 \
    o->tls.selected = true;                                         \
    o->tls.items[item] = value;                                     \
    return NULL;                                                    \
  }
TLS_FILE(cacert, CLI_TLS_CACERT)
TLS_FILE(crl, CLI_TLS_CRL)
TLS_FILE(cert, CLI_TLS_CERT)
TLS_FILE(key, CLI_TLS_KEY)
TLS_FILE(key_password_file, CLI_TLS_KEY_PASSWORD_FILE)

static const char *take_tls(cli_options *o, const char *value)
{
  (void)value;
  o->tls.selected = true;
  return NULL;
}

static const char *take_tls_name(cli_options *o, const char *value)
{
  o->tls.selected = true;
  o->tls.items[CLI_TLS_NAME] = value;
  return *value == '\0' ? "is not a name that a certificate can have" : NULL;
}

static const char *take_insecure(cli_options *o, const char *value)
{
  (void)value;
  o->tls.selected = true;
  o->tls.insecure = true;
  return NULL;
}

static const char *take_session_timeout(cli_options *o, const char *value)
{
  const char *wrong = cli_number_seconds(value, &o->session_timeout_ms);

  if (wrong == NULL && o->session_timeout_ms == 0)
    return "must be more than 0";
  return wrong;
}

static const char *take_connect_timeout(cli_options *o, const char *value)
{
  const char *wrong = cli_number_seconds(value, &o->connect_timeout_ms);

  if (wrong == NULL && o->connect_timeout_ms == 0)
    return "must be more than 0";
  return wrong;
}

static const char *take_max_request(cli_options *o, const char *value)
{
  return cli_size_limit_parse(CLI_MAX_REQUEST, value, &o->max_request);
}

static const char *take_max_reply(cli_options *o, const char *value)
{
  return cli_size_limit_parse(CLI_MAX_REPLY, value, &o->max_reply);
}

/* Stores the layout whose name has `len` bytes, or that LOCK is a single node.
   Returns false if the name is unknown. */
static bool store_layout(cli_options *o, const char *name, size_t len)
{
  static const char *const names[] = {[LK_LAYOUT_CURATOR] = "curator",
                                      [LK_LAYOUT_KAZOO] = "kazoo",
                                      [LK_LAYOUT_NATIVE] = "native",
                                      [LK_LAYOUT_NATIVE_UUID] = "native-uuid",
                                      [LK_LAYOUT_LATCH] = "latch"};
  static const char single[] = "single";

  o->layout = LK_LAYOUT_CURATOR;
  o->single_node = strlen(single) == len && strncmp(single, name, len) == 0;
  if (o->single_node)
    return true;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strlen(names[i]) != len || strncmp(names[i], name, len) != 0)
      continue;
    o->layout = (lk_layout)i;
    return true;
  }
  return false;
}

static bool is_start_of_name(const char *prefix)
{
  cli_text path = {0};
  cli_text ignored = {0};
  const bool sequential = true;

  cli_text_printf(&path, "/%s", prefix);
  const char *text = cli_text_end(&path);
  bool valid = text == NULL || cli_path_check(text, sequential, &ignored);

  cli_text_free(&ignored);
  cli_text_free(&path);
  return valid;
}

static const char *store_prefix(cli_options *o, const char *prefix)
{
  o->prefix = prefix;
  if (o->layout != LK_LAYOUT_NATIVE && o->layout != LK_LAYOUT_NATIVE_UUID)
    return "is followed by a prefix, which only native and native-uuid take";
  if (strchr(prefix, '/') != NULL || strcmp(prefix, "r-") == 0 ||
      strcmp(prefix, "w-") == 0)
    return "has the prefix r- or w-, which -s and -x use, or one that "
           "contains a /";
  return is_start_of_name(prefix)
             ? NULL
             : "has bytes that ZooKeeper refuses: a prefix is UTF-8 without "
               "control characters, and without characters from U+D800 to "
               "U+F8FF or above U+FFEF";
}

/* "LAYOUT" or "LAYOUT:PREFIX". */
static const char *take_layout(cli_options *o, const char *value)
{
  size_t len = strcspn(value, ":");

  if (!store_layout(o, value, len))
    return "is none of curator, kazoo, native[:PREFIX], native-uuid[:PREFIX], "
           "latch, single";
  o->prefix = NULL;
  o->layout_given = true;
  return value[len] == ':' ? store_prefix(o, value + len + 1) : NULL;
}

/* clang-format off */
const cli_option cli_options_common[] = {
  {'h', "help", NULL, "print this and exit", take_help},
  {0}};

const cli_option cli_options_version[] = {
  {'V', "version", NULL, "print the version and its features and exit", take_version},
  {0}};

/* For verbs whose -V is --node-version. */
const cli_option cli_options_long_version[] = {
  {0, "version", NULL, "print the version and its features and exit", take_version},
  {0}};

const cli_option cli_options_session[] = {
  {'z', "zk", "CONNECT", "servers: host:port,host:port/chroot (else $LATCHKEY_ZK, else 127.0.0.1:2181)", take_hosts},
  {'T', "session-timeout", "SECS", "request this session timeout (30)", take_session_timeout},
  {0, "connect-timeout", "SECS", "give up if no server grants a session in time (10)", take_connect_timeout},
  {0, "max-request", "BYTES", "refuse larger requests; jute.maxbuffer of the servers limits them, too (1048575)", take_max_request},
  {0, "max-reply", "BYTES", "refuse larger replies, such as lists (16M)", take_max_reply},
  {0, "auth-file", "FILE", "identities, one a line: digest:USER:PASSWORD or sasl:USER:PASSWORD", take_auth_file},
  {0, "tls", NULL, "use TLS (also selected by tls:// before the servers, or by any other TLS option)", take_tls},
  {0, "cacert", "FILE", "trust the CAs in this PEM file (default: the system's)", take_cacert},
  {0, "cert", "FILE", "present the certificate in this PEM file, with its chain", take_cert},
  {0, "key", "FILE", "key of the certificate, PEM (default: in the file of --cert)", take_key},
  {0, "key-password-file", "FILE", "the first line is the password of the key", take_key_password_file},
  {0, "crl", "FILE", "refuse certificates revoked by the lists in this PEM file", take_crl},
  {0, "tls-name", "NAME", "require this name in server certificates (default: the name in -z)", take_tls_name},
  {0, "insecure", NULL, "accept any server certificate", take_insecure},
  {'v', "verbose", NULL, "print progress to standard error", take_verbose},
  {0}};

const cli_option cli_options_json[] = {
  {0, "json", NULL, "print JSON, also for errors", take_json},
  {0}};

const cli_option cli_options_layout[] = {
  {0, "layout", "LAYOUT", "node names: curator, kazoo, native[:PREFIX], native-uuid[:PREFIX], latch; or single: LOCK is one node (curator; of elect: latch)", take_layout},
  {0}};

/* clang-format on */

const cli_option_lists cli_options_general = {
    cli_options_session, cli_options_json, cli_options_common,
    cli_options_version};
