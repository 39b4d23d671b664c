/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/options/number.h"
#include "cli/options/options.h"

enum { SESSION_TIMEOUT_MS = 30000, CONNECT_TIMEOUT_MS = 10000 };

void cli_options_init(cli_options *o)
{
  const char *hosts = getenv("LATCHKEY_ZK");

  memset(o, 0, sizeof *o);
  o->hosts = hosts != NULL && *hosts != '\0' ? hosts : "127.0.0.1:2181";
  o->session_timeout_ms = SESSION_TIMEOUT_MS;
  o->connect_timeout_ms = CONNECT_TIMEOUT_MS;
  o->wait_ms = -1;
  o->conflict_code = 124;
  o->acl = "open";
  o->foreground = isatty(STDIN_FILENO) != 0;
  o->events_fd = -1;
  o->node_version = -1;
}

/* A yes where there was a no. */
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
FLAG(quiet)
FLAG(json)
FLAG(foreground)
FLAG(ephemeral)
FLAG(sequential)
FLAG(container)
FLAG(parents)
FLAG(recursive)
FLAG(details)
FLAG(read_only)

/* Text that is looked at later. */
#define TEXT(member)                                                  \
  static const char *take_##member(cli_options *o, const char *value) \
  {                                                                   \
    o->member = value;                                                \
    return NULL;                                                      \
  }
TEXT(hosts)
TEXT(auth_file)
TEXT(command)
TEXT(label)
TEXT(acl)

/* Each of them selects TLS. */
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

static const char *take_exclusive(cli_options *o, const char *value)
{
  (void)value;
  o->side = CLI_SIDE_WRITE;
  return NULL;
}

static const char *take_shared(cli_options *o, const char *value)
{
  (void)value;
  o->side = CLI_SIDE_READ;
  return NULL;
}

static const char *take_lock(cli_options *o, const char *value)
{
  const char *path = value;

  if (strncmp(path, "x:", 2) == 0 || strncmp(path, "s:", 2) == 0)
    path += 2;
  if (lk_path_check(path) != 0 || strcmp(path, "/") == 0)
    return "is not a path below \"/\", nor x: or s: and such a path";
  if (o->more_count == CLI_MOST_LOCKS)
    return "is one lock too many: 64 are the most";
  o->more[o->more_count++] = value;
  return NULL;
}

static const char *take_permits(cli_options *o, const char *value)
{
  int64_t n;

  if (cli_number_whole(value, 1, 1000000, &n) != NULL)
    return "is not a number of permits from 1 to 1000000";
  o->permits = (int32_t)n;
  return NULL;
}

static const char *take_permits_taken(cli_options *o, const char *value)
{
  int64_t n;

  if (cli_number_whole(value, 1, 1000, &n) != NULL)
    return "is not a number of permits from 1 to 1000";
  o->take = (int32_t)n;
  return NULL;
}

static const char *take_nonblock(cli_options *o, const char *value)
{
  (void)value;
  o->wait_ms = 0;
  o->nonblock = true;
  return NULL;
}

static const char *take_wait(cli_options *o, const char *value)
{
  int64_t ms;
  const char *wrong = cli_number_seconds(value, &ms);

  if (wrong == NULL && !o->nonblock)
    o->wait_ms = ms;
  return wrong;
}

static const char *take_conflict_code(cli_options *o, const char *value)
{
  int64_t n;

  if (cli_number_whole(value, 0, 255, &n) != NULL)
    return "is not an exit code from 0 to 255";
  o->conflict_code = (int)n;
  return NULL;
}

static const char *take_kill_after(cli_options *o, const char *value)
{
  const char *wrong = cli_number_seconds(value, &o->kill_after_ms);

  if (wrong == NULL && o->kill_after_ms == 0)
    return "must be more than 0 (--on-lost kill kills at once)";
  return wrong;
}

static const char *take_min_hold(cli_options *o, const char *value)
{
  return cli_number_seconds(value, &o->min_hold_ms);
}

static const char *take_max_hold(cli_options *o, const char *value)
{
  const char *wrong = cli_number_seconds(value, &o->max_hold_ms);

  if (wrong == NULL && o->max_hold_ms == 0)
    return "must be more than 0";
  return wrong;
}

/* The place of `value` in `words`, which ends with NULL, or -1. */
static int find_word(const char *const *words, const char *value)
{
  for (int i = 0; words[i] != NULL; i++)
    if (strcmp(words[i], value) == 0)
      return i;
  return -1;
}

static const char *take_on_lost(cli_options *o, const char *value)
{
  static const char *const words[] = {"term", "kill", "stop", "ignore", NULL};
  int i = find_word(words, value);

  if (i < 0)
    return "is none of term, kill, stop, ignore";
  o->on_lost = (cli_on_lost)i;
  return NULL;
}

static const char *take_assurance(cli_options *o, const char *value)
{
  static const char *const words[] = {"quorum", "sync", "ping", NULL};
  int i = find_word(words, value);

  if (i < 0)
    return "is none of quorum, sync, ping";
  o->assurance = (lk_assurance)i;
  return NULL;
}

/* A word, and a prefix behind ":" where names have one. */
static const char *take_layout(cli_options *o, const char *value)
{
  static const char *const words[] = {"curator", "kazoo", "native",
                                      "native-uuid"};
  size_t len = strcspn(value, ":");

  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (strlen(words[i]) != len || strncmp(words[i], value, len) != 0)
      continue;
    o->layout = (lk_layout)i;
    o->prefix = value[len] == ':' ? value + len + 1 : NULL;
    if (o->prefix == NULL)
      return NULL;
    if (o->layout < LK_LAYOUT_NATIVE)
      return "is followed by a prefix, which only native and native-uuid take";
    return strchr(o->prefix, '/') == NULL && strcmp(o->prefix, "r-") != 0 &&
                   strcmp(o->prefix, "w-") != 0
               ? NULL
               : "has a prefix that is r- or w- (see -s and -x) or holds a /";
  }
  return "is none of curator, kazoo, native[:PREFIX], native-uuid[:PREFIX]";
}

static const char *take_events_fd(cli_options *o, const char *value)
{
  int64_t n;

  if (cli_number_whole(value, 0, INT32_MAX, &n) != NULL)
    return "is not the number of a descriptor";
  int flags = fcntl((int)n, F_GETFL);

  if (flags < 0)
    return "is not an open descriptor (in a shell: 3>FILE opens number 3)";
  if ((flags & O_ACCMODE) == O_RDONLY)
    return "is a descriptor that cannot be written to";
  o->events_fd = (int)n;
  return NULL;
}

static const char *take_node_version(cli_options *o, const char *value)
{
  int64_t n;

  if (cli_number_whole(value, -1, INT32_MAX, &n) != NULL)
    return "is not a version (0 and up; -1 is any)";
  o->node_version = (int32_t)n;
  return NULL;
}

static const char *take_ttl(cli_options *o, const char *value)
{
  return cli_number_whole(value, 1, LK_TTL_MAX_MS, &o->ttl_ms) == NULL
             ? NULL
             : "is not a number of milliseconds from 1 to 1099511627775";
}

static const char *take_count(cli_options *o, const char *value)
{
  return cli_number_whole(value, 1, INT64_MAX, &o->count) == NULL
             ? NULL
             : "is not a number of events, 1 or more";
}

/* clang-format off */
const cli_option cli_options_common[] = {
  {'h', "help", NULL, "print this and exit", take_help},
  {0}};

const cli_option cli_options_version[] = {
  {'V', "version", NULL, "print the version and its features and exit", take_version},
  {0}};

const cli_option cli_options_session[] = {
  {'z', "zk", "CONNECT", "servers: host:port,host:port/chroot (else $LATCHKEY_ZK, else 127.0.0.1:2181)", take_hosts},
  {'T', "session-timeout", "SECS", "session timeout to ask for (30)", take_session_timeout},
  {0, "connect-timeout", "SECS", "how long to look for a server (10)", take_connect_timeout},
  {0, "auth-file", "FILE", "identities: a line digest:USER:PASSWORD or sasl:USER:PASSWORD each", take_auth_file},
  {0, "tls", NULL, "use TLS, as tls:// before the servers and all options below do", take_tls},
  {0, "cacert", "FILE", "trust these CAs (PEM; the system's)", take_cacert},
  {0, "cert", "FILE", "certificate to show to servers, with its chain (PEM)", take_cert},
  {0, "key", "FILE", "its key (PEM; in the file of --cert)", take_key},
  {0, "key-password-file", "FILE", "the password of the key is the first line", take_key_password_file},
  {0, "crl", "FILE", "refuse what these revocation lists name (PEM)", take_crl},
  {0, "tls-name", "NAME", "name that certificates of servers must have (that of -z)", take_tls_name},
  {0, "insecure", NULL, "accept any certificate of a server", take_insecure},
  {'v', "verbose", NULL, "say what happens, on standard error", take_verbose},
  {0}};

const cli_option cli_options_json[] = {
  {0, "json", NULL, "print JSON, also for errors", take_json},
  {0}};

const cli_option cli_options_layout[] = {
  {0, "layout", "NAMES", "node names: curator, kazoo, native[:PREFIX], native-uuid[:PREFIX] (curator)", take_layout},
  {0}};

const cli_option cli_options_run[] = {
  {'s', "shared", NULL, "share the lock with others that say -s", take_shared},
  {'x', "exclusive", NULL, "hold it alone, also among those that say -s", take_exclusive},
  {'e', NULL, NULL, NULL, take_exclusive},
  {'l', "lock", "[x:|s:]PATH", "a further lock: all are taken, or none; repeatable", take_lock},
  {'p', "permits", "N", "LOCK is a semaphore of N permits", take_permits},
  {0, "take", "K", "take K of them (1)", take_permits_taken},
  {'n', "nonblock", NULL, "do not wait when the lock is held", take_nonblock},
  {0, "nb", NULL, NULL, take_nonblock},
  {'w', "wait", "SECS", "wait no longer, connecting included", take_wait},
  {0, "timeout", "SECS", NULL, take_wait},
  {'E', "conflict-exit-code", "N", "exit code when the lock is not obtained (124)", take_conflict_code},
  {'c', "command", "STRING", "run STRING with $SHELL -c; also directly after LOCK", take_command},
  {'i', "id", "TEXT", "label to show to others (host, pid, start time)", take_label},
  {0, "acl", "SPEC", "access list: open, creator, or scheme:id:cdrwa,... (open)", take_acl},
  {0, "on-lost", "ACT", "to COMMAND when the lease runs out: term, kill, stop, ignore (term)", take_on_lost},
  {0, "kill-after", "SECS", "from TERM to KILL (a sixth of the session timeout)", take_kill_after},
  {0, "min-hold", "SECS", "keep the lock at least so long, also when COMMAND ends sooner", take_min_hold},
  {0, "max-hold", "SECS", "end COMMAND as --on-lost says when it has run so long", take_max_hold},
  {0, "assurance", "HOW", "what keeps the lease: quorum, sync, ping (quorum)", take_assurance},
  {0, "foreground", NULL, "leave COMMAND in the terminal's process group", take_foreground},
  {'q', "quiet", NULL, "no progress and no notices", take_quiet},
  {0, "json", NULL, "one JSON object a line for each event, on standard error", take_json},
  {0, "events-fd", "N", "the same on descriptor N", take_events_fd},
  {0}};

const cli_option cli_options_wait[] = {
  {'w', "wait", "SECS", "wait no longer", take_wait},
  {0, "timeout", "SECS", NULL, take_wait},
  {0}};

const cli_option cli_options_write[] = {
  {'V', "node-version", "VERSION", "only if the node has this version", take_node_version},
  {0}};

const cli_option cli_options_delete[] = {
  {'r', "recursive", NULL, "delete all that is below it too", take_recursive},
  {0}};

const cli_option cli_options_create[] = {
  {'e', "ephemeral", NULL, "the node lives as long as this command: until interrupted", take_ephemeral},
  {'s', "sequential", NULL, "the server appends a number that grows", take_sequential},
  {'c', "container", NULL, "the node goes when its last child has gone", take_container},
  {'t', "ttl", "MS", "the node goes when it has not changed for so long and has no children", take_ttl},
  {'p', "parents", NULL, "make missing parents too", take_parents},
  {0, "acl", "SPEC", "access list: open, creator, or scheme:id:cdrwa,... (open)", take_acl},
  {0}};
const cli_option cli_options_ls[] = {
  {'l', "long", NULL, "with children, length, version, time of change and owner", take_details},
  {'R', "recursive", NULL, "all that is below it, not only its children", take_recursive},
  {0}};

const cli_option cli_options_read[] = {
  {0, "read-only", NULL, "where there is no quorum, read what a server without one has", take_read_only},
  {0}};

const cli_option cli_options_watch[] = {
  {'r', "recursive", NULL, "also at all nodes below it", take_recursive},
  {'n', "count", "COUNT", "end after so many events", take_count},
  {0}};
/* clang-format on */

const cli_option_lists cli_options_general = {
    cli_options_session, cli_options_json, cli_options_common,
    cli_options_version};
