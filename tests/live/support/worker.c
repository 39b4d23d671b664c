/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Executes commands from standard input, one command in each line:
 *
 *     TAG VERB OBJECT KEY=VALUE...
 *
 * and prints a line for each result and event, preceded by the time in ms on
 * CLOCK_BOOTTIME:
 *
 *     TIME TAG err=0 ...             the result of a command
 *     TIME OBJECT state ...          the new state of a client
 *     TIME OBJECT event ...          an event of a watch
 *     TIME OBJECT lock ...           an event of a lock
 *     TIME OBJECT candidate ...      an event of a candidate
 *     TIME OBJECT member ...         an event of a member
 *     TIME OBJECT roster ...         a report of a roster
 *     TIME OBJECT notified ...       a notification of a subscription
 *     TIME OBJECT log ...            a log line of a client
 *
 * Bytes are in hex. At the end of its input the worker frees all objects and
 * exits.
 */

#include "live/support/worker.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { INPUT_SIZE = 3 << 20, MAX_HEX_BYTES = 4096 };

static object *objects;
static bool input_has_ended;
static char input[INPUT_SIZE]; /* received and not executed yet */
static size_t input_len;
static unsigned char decoded[INPUT_SIZE]; /* results of option_bytes() */
static size_t decoded_len;
static unsigned long sends; /* number of send() calls */
unsigned long long worker_bytes_sent;

/* ---- the writes of this process, counted by the linker's --wrap ---------- */

ssize_t __real_send(int fd, const void *at, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *at, size_t len, int flags);

ssize_t __wrap_send(int fd, const void *at, size_t len, int flags)
{
  ssize_t sent = __real_send(fd, at, len, flags);

  sends++;
  if (sent > 0)
    worker_bytes_sent += (unsigned long long)sent;
  return sent;
}

/* ---- output ------------------------------------------------------------- */

void print_line(const char *name, const char *format, ...)
{
  struct timespec now;
  va_list args;

  clock_gettime(CLOCK_BOOTTIME, &now);
  /* In ms, with three decimals. */
  printf("%lld.%03ld %s ", (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000,
         now.tv_nsec / 1000 % 1000, name);
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  putchar('\n');
  fflush(stdout);
}

const char *error_word(int err)
{
  static char number[16];
  const char *name = lk_error_name(err);

  if (err == 0)
    return "0";
  if (name != NULL)
    return name;
  snprintf(number, sizeof number, "%d", err);
  return number;
}

const char *hex(lk_bytes b)
{
  static char buffers[4][2 * MAX_HEX_BYTES + 1];
  static unsigned calls;
  char *out = buffers[calls++ % 4];
  size_t len = b.len < MAX_HEX_BYTES ? b.len : MAX_HEX_BYTES;

  if (b.at == NULL)
    return "null";
  for (size_t i = 0; i < len; i++)
    sprintf(out + 2 * i, "%02x", ((const unsigned char *)b.at)[i]);
  out[2 * len] = '\0';
  return out;
}

const char *join_names(const lk_bytes *names, size_t count)
{
  static char text[1 << 16];
  size_t len = 0;

  text[0] = '\0';
  for (size_t i = 0; i < count && len + names[i].len + 2 < sizeof text; i++)
    len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s",
                            i == 0 ? "" : ",", (int)names[i].len,
                            (const char *)names[i].at);
  return text;
}

void report_made(const command *cmd, int err)
{
  print_line(cmd->tag, err == 0 ? "err=%s" : "refused=%s", error_word(err));
}

void report_if_refused(const command *cmd, int err, void *tag)
{
  if (err == 0)
    return;
  print_line(cmd->tag, "refused=%s", error_word(err));
  free(tag);
}

void *copy_tag(const command *cmd)
{
  char *tag = strdup(cmd->tag);

  if (tag == NULL)
    abort();
  return tag;
}

/* ---- objects ------------------------------------------------------------ */

object *object_new(const char *name)
{
  object *o = calloc(1, sizeof *o);

  if (o == NULL)
    abort();
  snprintf(o->name, sizeof o->name, "%s", name);
  o->next = objects;
  objects = o;
  return o;
}

object *object_find(const char *name)
{
  object *o = objects;

  while (o != NULL && strcmp(o->name, name) != 0)
    o = o->next;
  return o;
}

void object_forget(object *o)
{
  object **at = &objects;

  while (*at != o)
    at = &(*at)->next;
  *at = o->next;
  free(o);
}

/* Free the object, in any case before its client. false: it is a client. */
static bool object_free_user(object *o)
{
  if (o->candidate != NULL)
    object_free_candidate(o);
  else if (o->lock != NULL)
    object_free_lock(o);
  else if (o->member != NULL)
    object_free_member(o);
  else if (o->roster != NULL)
    object_free_roster(o);
  else if (o->subscription != NULL)
    object_free_subscription(o);
  else
    return false;
  return true;
}

void object_free(object *o)
{
  if (!object_free_user(o))
    object_free_client(o);
}

/* The list may change with each object: both sides of a read-write lock are
 * freed together. */
static void free_all(void)
{
  object *o = objects;

  while (o != NULL)
    o = object_free_user(o) ? objects : o->next;
  while (objects != NULL)
    object_free_client(objects);
}

/* ---- options ------------------------------------------------------------ */

const char *option(const command *cmd, const char *key)
{
  size_t len = strlen(key);

  for (size_t i = 0; i < cmd->option_count; i++) {
    const char *text = cmd->options[i];

    if (strncmp(text, key, len) == 0 && text[len] == '=')
      return text + len + 1;
  }
  return NULL;
}

long long option_number(const command *cmd, const char *key,
                        long long if_absent)
{
  const char *text = option(cmd, key);

  return text == NULL ? if_absent : strtoll(text, NULL, 0);
}

int32_t option_version(const command *cmd)
{
  return (int32_t)option_number(cmd, "version", -1);
}

bool option_flag(const command *cmd, const char *key)
{
  return option_number(cmd, key, 0) != 0;
}

const char *option_path(const command *cmd)
{
  const char *path = option(cmd, "path");

  return path == NULL ? "" : path;
}

static unsigned char hex_digit_value(char c)
{
  return (unsigned char)(isdigit((unsigned char)c) ? c - '0' : c - 'a' + 10);
}

lk_bytes option_bytes(const command *cmd, const char *key)
{
  const char *text = option(cmd, key);
  unsigned char *out = decoded + decoded_len;
  size_t len;

  if (text == NULL || strcmp(text, "null") == 0)
    return lk_text(NULL);
  len = strlen(text) / 2;
  for (size_t i = 0; i < len; i++)
    out[i] = (unsigned char)(hex_digit_value(text[2 * i]) << 4 |
                             hex_digit_value(text[2 * i + 1]));
  decoded_len += len;
  return lk_bytes_of(out, len);
}

/* The list of one entry, "PERMS:SCHEME:ID". The second call after this one
 * overwrites it: a lock has two access lists. */
static const lk_acls *parse_acl(const char *option_text)
{
  static lk_acl entries[2];
  static lk_acls acls[2];
  static char texts[2][256];
  static unsigned calls;
  unsigned n = calls++ % 2;
  char *text = texts[n], *scheme, *id;

  snprintf(text, sizeof texts[n], "%s", option_text);
  scheme = strchr(text, ':');
  id = scheme == NULL ? NULL : strchr(scheme + 1, ':');
  if (id == NULL)
    abort();
  *scheme++ = '\0';
  *id++ = '\0';
  entries[n] = (lk_acl){.perms = (int32_t)strtol(text, NULL, 0),
                        .scheme = lk_text(scheme),
                        .id = lk_text(id)};
  acls[n] = (lk_acls){.entries = &entries[n], .count = 1};
  return &acls[n];
}

const lk_acls *option_acl(const command *cmd, const char *key)
{
  const char *text = option(cmd, key);

  if (text == NULL)
    return NULL;
  if (strcmp(text, "open") == 0)
    return lk_acl_open();
  if (strcmp(text, "creator") == 0)
    return lk_acl_creator();
  if (strcmp(text, "read") == 0)
    return lk_acl_read();
  return parse_acl(text);
}

/* ---- input -------------------------------------------------------------- */

/* Execute the command if its verb is in the array; returns whether it is. */
static bool execute_one_of(const verb *verbs, const command *cmd, object *o)
{
  for (; verbs->name != NULL; verbs++) {
    if (strcmp(verbs->name, cmd->verb) == 0) {
      verbs->execute(cmd, o);
      return true;
    }
  }
  return false;
}

/* Whether the verb makes a new object. */
static bool makes_object(const char *verb_name)
{
  static const char *const makers[] = {
      "client", "lock",      "rwlock",    "semaphore", "multilock",
      "single", "subscribe", "candidate", "member",    "roster"};

  for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
    if (strcmp(verb_name, makers[i]) == 0)
      return true;
  }
  return false;
}

/* Open `count` more descriptors, which stay open. */
static void execute_descriptors(const command *cmd)
{
  long long count = option_number(cmd, "count", 0);
  int fd = 0;

  while (count-- > 0 && fd >= 0)
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  print_line(cmd->tag, "err=%d last=%d", fd < 0 ? errno : 0, fd);
}

static void execute_line(char *text)
{
  command cmd = {.tag = strtok(text, " "),
                 .verb = strtok(NULL, " "),
                 .name = strtok(NULL, " ")};
  object *o;

  if (cmd.name == NULL)
    abort();
  while (cmd.option_count < sizeof cmd.options / sizeof cmd.options[0] &&
         (cmd.options[cmd.option_count] = strtok(NULL, " ")) != NULL)
    cmd.option_count++;
  decoded_len = 0;
  /* These two verbs take no object. */
  if (strcmp(cmd.verb, "sends") == 0) {
    print_line(cmd.tag, "err=0 sends=%lu", sends);
    return;
  }
  if (strcmp(cmd.verb, "descriptors") == 0) {
    execute_descriptors(&cmd);
    return;
  }
  o = object_find(cmd.name);
  if (o == NULL && !makes_object(cmd.verb)) {
    print_line(cmd.tag, "refused=no_such_object");
    return;
  }
  if (o != NULL && makes_object(cmd.verb)) {
    print_line(cmd.tag, "refused=object_exists");
    return;
  }
  if (!execute_one_of(client_verbs, &cmd, o) &&
      !execute_one_of(lock_verbs, &cmd, o) &&
      !execute_one_of(kind_verbs, &cmd, o) &&
      !execute_one_of(node_verbs, &cmd, o) &&
      !execute_one_of(crowd_verbs, &cmd, o) &&
      !execute_one_of(subscribe_verbs, &cmd, o) &&
      !execute_one_of(candidate_verbs, &cmd, o) &&
      !execute_one_of(member_verbs, &cmd, o))
    print_line(cmd.tag, "refused=no_such_verb");
}

static void execute_lines(void)
{
  char *at = input, *end;

  while ((end = memchr(at, '\n', input_len - (size_t)(at - input))) != NULL) {
    *end = '\0';
    execute_line(at);
    at = end + 1;
  }
  input_len -= (size_t)(at - input);
  memmove(input, at, input_len);
}

static void on_input(test_watch *w)
{
  ssize_t got = read(w->fd, input + input_len, sizeof input - input_len);

  if (got < 0 && errno == EINTR)
    return;
  if (got <= 0) {
    input_has_ended = true;
    return;
  }
  input_len += (size_t)got;
  execute_lines();
}

int main(void)
{
  test_watch watch = {.fd = STDIN_FILENO, .on_readable = on_input};

  signal(SIGPIPE, SIG_DFL); /* exit when the test has died */
  test_driver_open();
  test_watch_start(&watch);
  while (!input_has_ended)
    test_driver_turn(-1);
  test_watch_stop(&watch);
  free_all();
  test_driver_close();
  return 0;
}
