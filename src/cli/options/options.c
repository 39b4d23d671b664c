/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/options/options.h"

#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/options/node_path.h"
#include "cli/options/number.h"
#include "cli/output/exit_code.h"

/* ---- the table for getopt_long() ----------------------------------------- */

/* More than any verb has. */
enum { MAX_OPTIONS = 48 };

/* The option lists in the form of getopt_long(). */
struct getopt_table {
  const cli_option *options[MAX_OPTIONS];
  size_t count;                         /* number of `options` */
  struct option longs[MAX_OPTIONS + 1]; /* the last stays zero */
  size_t nlongs;
  /* The option string: order, ':', and each letter, with ':' if the option
     takes an argument; ended by a NUL. */
  char letters[2 + 2 * MAX_OPTIONS + 1];
  size_t nletters; /* number of characters in `letters` */
};

/* For the long form of option `i` of the table getopt_long() returns LONG_FORM
   + i, which is larger than any letter. */
enum { LONG_FORM = 256 };

/* Results of getopt_long(). The order '-' makes it return OPERAND; ':' after
   the order makes it distinguish MISSING_ARGUMENT from WRONG_OPTION. */
enum { OPERAND = 1, MISSING_ARGUMENT = ':', WRONG_OPTION = '?' };

/* The order characters of getopt_long(): it stops at the first operand, or
   returns each operand as OPERAND and goes on. */
enum { STOP_AT_OPERAND = '+', RETURN_OPERANDS = '-' };

static void add_option(struct getopt_table *t, const cli_option *option)
{
  if (option->letter != '\0') {
    t->letters[t->nletters++] = option->letter;
    if (option->arg != NULL)
      t->letters[t->nletters++] = ':';
  }
  if (option->name != NULL) {
    struct option *l = &t->longs[t->nlongs++];

    l->name = option->name;
    l->has_arg = option->arg != NULL ? required_argument : no_argument;
    l->val = LONG_FORM + (int)t->count;
  }
  t->options[t->count++] = option;
}

static void fill_getopt_table(struct getopt_table *t,
                              const cli_option_lists lists, char order)
{
  memset(t, 0, sizeof *t);
  t->letters[t->nletters++] = order;
  t->letters[t->nletters++] = ':';
  for (size_t i = 0; i < CLI_MAX_LISTS && lists[i] != NULL; i++)
    for (const cli_option *option = lists[i]; option->take != NULL; option++)
      if (t->count < MAX_OPTIONS)
        add_option(t, option);
}

/* ---- options that are not known or not complete -------------------------- */

/* Returns the option with this value of getopt_long(): a letter, or LONG_FORM +
   an index. Returns NULL if there is none. */
static const cli_option *find_option(const struct getopt_table *t, int value)
{
  if (value >= LONG_FORM)
    return t->options[value - LONG_FORM];
  for (size_t i = 0; i < t->count; i++)
    if (t->options[i]->letter == value)
      return t->options[i];
  return NULL;
}

static void show_option_name(cli_text *out, const cli_option *option)
{
  if (option->name != NULL)
    cli_text_printf(out, "--%s", option->name);
  else
    cli_text_printf(out, "-%c", option->letter);
}

/* Shows the unknown option: one letter if `word` is a group of letters, such as
   -nxv; else the whole word. */
static void show_unknown_option(cli_text *out, const char *word)
{
  bool printable = optopt > ' ' && optopt < 0x7f;

  if (printable && strncmp(word, "--", 2) != 0) {
    cli_text_printf(out, "unknown option -%c", optopt);
  } else {
    cli_text_puts(out, "unknown option ");
    cli_text_add_printable(out, lk_text(word));
  }
}

/* Refuses an option that is unknown, or has an argument and takes none: then
   `optopt` is the value of its long form. */
static void refuse_wrong_option(const struct getopt_table *t, const char *word,
                                cli_text *complaint)
{
  if (optopt >= LONG_FORM)
    cli_text_printf(complaint, "--%s takes no argument",
                    find_option(t, optopt)->name);
  else
    show_unknown_option(complaint, word);
}

/* ---- parsing ------------------------------------------------------------- */

/* Handles one result of getopt_long(), `got`, for an option in `word`. On error
   `complaint` gets one line. */
static void parse_option(cli_options *o, const struct getopt_table *t, int got,
                         const char *word, cli_text *complaint)
{
  if (got == WRONG_OPTION) {
    refuse_wrong_option(t, word, complaint);
    return;
  }
  /* `optopt` is the option whose argument is missing. */
  const cli_option *option =
      find_option(t, got == MISSING_ARGUMENT ? optopt : got);

  if (option == NULL) {
    show_unknown_option(complaint, word);
    return;
  }
  if (got == MISSING_ARGUMENT) {
    show_option_name(complaint, option);
    cli_text_printf(complaint, " needs an argument: %s", option->arg);
    return;
  }
  const char *wrong = option->take(o, optarg);

  if (wrong == NULL)
    return;
  show_option_name(complaint, option);
  cli_text_puts(complaint, ": \"");
  cli_text_add_printable(complaint, lk_text(optarg));
  cli_text_printf(complaint, "\" %s", wrong);
}

/* Parses options. With RETURN_OPERANDS, operands move to argv[1] and after;
   returns their number. Parsing goes on after the first complaint: a --json
   that follows it decides how the complaint is printed. */
static int parse_options(cli_options *o, const struct getopt_table *t, int argc,
                         char **argv, cli_text *complaint)
{
  int operands = 0;

  opterr = 0;
  optind = 0; /* 0 makes getopt_long() read the order character again */
  for (;;) {
    /* getopt_long() parses this word next. */
    const char *word = argv[optind == 0 ? 1 : optind];
    int got = getopt_long(argc, argv, t->letters, t->longs, NULL);
    cli_text ignored = {0};
    bool has_complaint = complaint->len > 0 || complaint->failed;

    if (got == -1)
      return operands;
    if (got == OPERAND)
      argv[++operands] = optarg;
    else
      parse_option(o, t, got, word, has_complaint ? &ignored : complaint);
    cli_text_free(&ignored);
  }
}

int cli_options_take(cli_options *o, const cli_option_lists lists, int argc,
                     char **argv, cli_text *complaint)
{
  struct getopt_table t;

  fill_getopt_table(&t, lists, STOP_AT_OPERAND);
  parse_options(o, &t, argc, argv, complaint);
  return optind;
}

int cli_options_take_anywhere(cli_options *o, const cli_option_lists lists,
                              int argc, char **argv, cli_text *complaint)
{
  struct getopt_table t;

  fill_getopt_table(&t, lists, RETURN_OPERANDS);
  int operands = parse_options(o, &t, argc, argv, complaint);

  while (optind < argc) /* operands after "--" */
    argv[++operands] = argv[optind++];
  argv[operands + 1] = NULL;
  return operands;
}

/* Parses the options after PATH, argv[0]. */
static void take_options_after_path(cli_options *o,
                                    const cli_option_lists lists, int argc,
                                    char **argv, cli_text *complaint)
{
  int operands = cli_options_take_anywhere(o, lists, argc, argv, complaint);

  if (operands > 0 && complaint->len == 0)
    cli_text_puts(complaint,
                  "options must stand before PATH if COMMAND follows (put -- "
                  "before a COMMAND that begins with -)");
  argv[1] = NULL;
}

int cli_options_take_before_command(cli_options *o,
                                    const cli_option_lists lists, int argc,
                                    char **argv, cli_text *complaint)
{
  int path = cli_options_take(o, lists, argc, argv, complaint);
  const char *second = path < argc ? argv[path + 1] : NULL;

  if (second == NULL || second[0] != '-')
    return path;
  if (strcmp(second, "--") != 0) {
    take_options_after_path(o, lists, argc - path, argv + path, complaint);
    return path;
  }
  if (argv[path + 2] == NULL && complaint->len == 0)
    cli_text_puts(complaint, "COMMAND is missing");
  argv[path + 1] = argv[path]; /* replaces the "--" */
  return path + 1;
}

/* ---- help ---------------------------------------------------------------- */

void cli_options_help(const cli_option_lists lists, cli_text *out)
{
  for (size_t i = 0; i < CLI_MAX_LISTS && lists[i] != NULL; i++)
    for (const cli_option *option = lists[i]; option->take != NULL; option++) {
      cli_text form = {0};

      if (option->help == NULL)
        continue;
      if (option->letter != '\0')
        cli_text_printf(&form, "-%c, ", option->letter);
      else
        cli_text_puts(&form, "    ");
      if (option->name != NULL)
        cli_text_printf(&form, "--%s", option->name);
      if (option->arg != NULL)
        cli_text_printf(&form, " %s", option->arg);
      const char *text = cli_text_end(&form);

      cli_text_printf(out, "  %-28s %s\n", text == NULL ? "" : text,
                      option->help);
      cli_text_free(&form);
    }
}

/* ---- options that verbs share -------------------------------------------- */

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
