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
 *     TIME OBJECT notified ...       a notification of a subscription
 *     TIME OBJECT log ...            a log line of a client
 *
 * Bytes are in hex. At the end of its input the worker frees all objects and
 * exits.
 */

#include "live/support/worker.h"

#include <ctype.h>
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LINE_SIZE = 3 << 20 };

lk_ev *worker_ev;
static object *objects;
static struct ev_loop *loop;
static char line[LINE_SIZE]; /* input that was not executed yet */
static size_t line_len;
static unsigned char bytes[LINE_SIZE]; /* the results of option_bytes() */
static size_t bytes_len;
static unsigned long sends; /* number of send() calls */
unsigned long long worker_sent;

/* ---- the writes of this process, counted by the linker's --wrap ---------- */

ssize_t __real_send(int fd, const void *at, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *at, size_t len, int flags);

ssize_t __wrap_send(int fd, const void *at, size_t len, int flags)
{
  ssize_t sent = __real_send(fd, at, len, flags);

  sends++;
  worker_sent += sent > 0 ? (unsigned long long)sent : 0;
  return sent;
}

/* ---- output ------------------------------------------------------------- */

void print_line(const char *name, const char *format, ...)
{
  struct timespec now;
  va_list args;

  clock_gettime(CLOCK_BOOTTIME, &now);
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
  static char buffers[4][2 * 4096 + 1];
  static unsigned turn;
  char *out = buffers[turn++ % 4];
  size_t len = b.len < 4096 ? b.len : 4096;

  if (b.at == NULL)
    return "null";
  for (size_t i = 0; i < len; i++)
    sprintf(out + 2 * i, "%02x", ((const unsigned char *)b.at)[i]);
  out[2 * len] = '\0';
  return out;
}

void report_refusal(const command *cmd, int err, void *tag)
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

static object *some_lock(void)
{
  object *o = objects;

  while (o != NULL && o->lock == NULL)
    o = o->next;
  return o;
}

static object *some_subscription(void)
{
  object *o = objects;

  while (o != NULL && o->subscription == NULL)
    o = o->next;
  return o;
}

static void free_all(void)
{
  object *o;

  /* Locks and subscriptions must be freed before their clients. */
  while ((o = some_lock()) != NULL)
    object_free_lock(o);
  while ((o = some_subscription()) != NULL)
    object_free_subscription(o);
  while (objects != NULL)
    object_free_client(objects);
}

/* ---- options ------------------------------------------------------------ */

const char *option(const command *cmd, const char *key)
{
  size_t len = strlen(key);

  for (size_t i = 0; i < cmd->count; i++) {
    if (strncmp(cmd->words[i], key, len) == 0 && cmd->words[i][len] == '=')
      return cmd->words[i] + len + 1;
  }
  return NULL;
}

long long option_number(const command *cmd, const char *key, long long usual)
{
  const char *text = option(cmd, key);

  return text == NULL ? usual : strtoll(text, NULL, 0);
}

const char *option_path(const command *cmd)
{
  const char *path = option(cmd, "path");

  return path == NULL ? "" : path;
}

static unsigned char digit(char c)
{
  return (unsigned char)(isdigit((unsigned char)c) ? c - '0' : c - 'a' + 10);
}

lk_bytes option_bytes(const command *cmd, const char *key)
{
  const char *text = option(cmd, key);
  unsigned char *at = bytes + bytes_len;
  size_t len;

  if (text == NULL || strcmp(text, "null") == 0)
    return lk_text(NULL);
  len = strlen(text) / 2;
  for (size_t i = 0; i < len; i++)
    at[i] = (unsigned char)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
  bytes_len += len;
  return lk_bytes_of(at, len);
}

const lk_acls *option_acl(const command *cmd, const char *key)
{
  static lk_acl entry[2];
  static lk_acls acls[2];
  static char texts[2][256];
  static unsigned turn;
  const char *text = option(cmd, key);
  char *scheme, *id;
  unsigned n = turn++ % 2;

  if (text == NULL)
    return NULL;
  if (strcmp(text, "open") == 0)
    return &lk_acl_open;
  if (strcmp(text, "creator") == 0)
    return &lk_acl_creator;
  if (strcmp(text, "read") == 0)
    return &lk_acl_read;
  snprintf(texts[n], sizeof texts[n], "%s", text);
  entry[n].perms = (int32_t)strtol(texts[n], &scheme, 0);
  id = strchr(*scheme == ':' ? ++scheme : scheme, ':');
  if (id == NULL)
    abort();
  *id++ = '\0';
  entry[n].scheme = lk_text(scheme);
  entry[n].id = lk_text(id);
  acls[n].entries = &entry[n];
  acls[n].count = 1;
  return &acls[n];
}

/* ---- input -------------------------------------------------------------- */

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
static bool makes_object(const char *what)
{
  static const char *const makers[] = {"client",    "lock",      "rwlock",
                                       "semaphore", "multilock", "single",
                                       "subscribe"};

  for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
    if (strcmp(what, makers[i]) == 0)
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

static void execute(char *text)
{
  command cmd = {.tag = strtok(text, " "),
                 .verb = strtok(NULL, " "),
                 .name = strtok(NULL, " ")};
  object *o;

  if (cmd.name == NULL)
    abort();
  while (cmd.count < 64 && (cmd.words[cmd.count] = strtok(NULL, " ")) != NULL)
    cmd.count++;
  bytes_len = 0;
  if (strcmp(cmd.verb, "sends") == 0) {
    print_line(cmd.tag, "err=0 sends=%lu", sends);
    return;
  }
  if (strcmp(cmd.verb, "descriptors") == 0) {
    execute_descriptors(&cmd);
    return;
  }
  o = object_find(cmd.name);
  if ((o == NULL) != makes_object(cmd.verb)) {
    print_line(cmd.tag, "refused=no_such_object");
    return;
  }
  if (!execute_one_of(client_verbs, &cmd, o) &&
      !execute_one_of(lock_verbs, &cmd, o) &&
      !execute_one_of(kind_verbs, &cmd, o) &&
      !execute_one_of(node_verbs, &cmd, o) &&
      !execute_one_of(crowd_verbs, &cmd, o) &&
      !execute_one_of(subscribe_verbs, &cmd, o))
    print_line(cmd.tag, "refused=no_such_verb");
}

static void execute_lines(void)
{
  char *at = line, *end;

  while ((end = memchr(at, '\n', line_len - (size_t)(at - line))) != NULL) {
    *end = '\0';
    execute(at);
    at = end + 1;
  }
  line_len -= (size_t)(at - line);
  memmove(line, at, line_len);
}

static void on_input(struct ev_loop *l, ev_io *w, int revents)
{
  ssize_t got = read(w->fd, line + line_len, sizeof line - line_len);

  (void)revents;
  if (got < 0 && errno == EINTR)
    return;
  if (got <= 0) {
    ev_break(l, EVBREAK_ALL);
    return;
  }
  line_len += (size_t)got;
  execute_lines();
}

int main(void)
{
  ev_io input;
  int err;

  signal(SIGPIPE, SIG_DFL); /* exit when the test has died */
  loop = ev_loop_new(0);
  if (loop == NULL || (err = lk_ev_new(&worker_ev, loop, NULL)) != 0) {
    fprintf(stderr, "worker: cannot make a loop\n");
    return 1;
  }
  ev_io_init(&input, on_input, STDIN_FILENO, EV_READ);
  ev_io_start(loop, &input);
  ev_run(loop, 0);
  ev_io_stop(loop, &input);
  free_all();
  lk_ev_free(worker_ev);
  ev_loop_destroy(loop);
  return 0;
}
