/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/guard.h"
#include "cli/knock.h"
#include "cli/word.h"

_Static_assert(sizeof(cli_knock_news) <= PIPE_BUF, "news go in one piece");

/* Between two parts of an answer. */
enum { MOST_PAUSE_MS = 1000, WORD_LEN = 4 };

/* ---- the child -------------------------------------------------------------
 */

typedef struct door {
  const char *host;
  char port[8];
  int64_t until; /* on cli_guard_clock() */
  int fd;        /* for news */
  cli_knock_news news;
} door;

static void tell(door *d, cli_knock_stage stage, const char *text, size_t len)
{
  cli_knock_news *n = &d->news;

  n->stage = stage;
  n->len = len < sizeof n->text ? len : sizeof n->text;
  if (len > 0)
    memcpy(n->text, text, n->len);
  if (write(d->fd, n, sizeof *n) != sizeof *n)
    _exit(1);
}

static void tell_error(door *d, cli_knock_stage stage, const char *text)
{
  tell(d, stage, text, strlen(text));
}

/* Wait until `fd` is ready for `what`; false: it is not in time. No signal of
   this process has a handler, so none interrupts poll(). */
static bool wait_for(int fd, short what, int64_t until)
{
  struct pollfd ready = {fd, what, 0};
  int64_t left = until - cli_guard_clock();

  return left > 0 && poll(&ready, 1, (int)left) > 0;
}

static void name_address(door *d, const struct addrinfo *a)
{
  char host[64];
  char port[8];

  if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof host, port,
                  sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return;
  snprintf(d->news.address, sizeof d->news.address,
           strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s", host, port);
}

/* A connection, or -1 with errno. */
static int dial(const struct addrinfo *a, int64_t until)
{
  int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
  socklen_t size = sizeof errno;
  int error = 0;

  if (fd < 0)
    return -1;
  if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0 ||
      (connect(fd, a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS))
    error = errno;
  else if (!wait_for(fd, POLLOUT, until))
    error = ETIMEDOUT;
  else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
    error = errno;
  if (error == 0)
    return fd;
  close(fd);
  errno = error;
  return -1;
}

/* Each address gets its share of the time that is left. */
static const struct addrinfo *find_open(door *d, const struct addrinfo *list,
                                        int *fd)
{
  int64_t count = 0;

  for (const struct addrinfo *a = list; a != NULL; a = a->ai_next)
    count++;
  for (const struct addrinfo *a = list; a != NULL; a = a->ai_next, count--) {
    int64_t now = cli_guard_clock();

    name_address(d, a);
    tell(d, CLI_KNOCK_CALLING, NULL, 0);
    *fd = dial(a, now + (d->until - now) / count);
    if (*fd >= 0)
      return a;
  }
  tell_error(d, CLI_KNOCK_CLOSED, strerror(errno));
  return NULL;
}

/* Ask, and take what comes until the other side hangs up or has nothing more to
   say. Gives its length; -1: nothing came in time. */
static ssize_t ask(int fd, const char *word, int64_t until, char *out,
                   size_t size)
{
  size_t len = 0;

  if (send(fd, word, WORD_LEN, MSG_NOSIGNAL) != WORD_LEN)
    return 0;
  while (len < size) {
    if (!wait_for(fd, POLLIN, until))
      return len == 0 ? -1 : (ssize_t)len;
    ssize_t n = recv(fd, out + len, size - len, 0);

    if (n <= 0)
      break;
    len += (size_t)n;
    if (until > cli_guard_clock() + MOST_PAUSE_MS)
      until = cli_guard_clock() + MOST_PAUSE_MS;
  }
  return (ssize_t)len;
}

/* Ask one word after the other until one is obeyed. Each takes a connection;
   `fd` is the first. */
static void ask_words(door *d, const struct addrinfo *a, int fd)
{
  char answer[sizeof d->news.text];

  for (const char *const *word = cli_words; *word != NULL && fd >= 0; word++) {
    ssize_t len = ask(fd, *word, d->until, answer, sizeof answer);

    close(fd);
    fd = -1;
    if (len > 0)
      tell(d, CLI_KNOCK_ANSWERED, answer, (size_t)len);
    else if (d->news.stage != CLI_KNOCK_ANSWERED)
      tell(d, len < 0 ? CLI_KNOCK_OPEN : CLI_KNOCK_HUNG_UP, NULL, 0);
    if (len > 0 && cli_word_off(lk_bytes_of(answer, (size_t)len)))
      fd = dial(a, d->until);
  }
}

static void knock(door *d)
{
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                           .ai_flags = AI_NUMERICSERV};
  struct addrinfo *list = NULL;
  int fd = -1;
  int wrong = getaddrinfo(d->host, d->port, &hints, &list);

  if (wrong != 0) {
    tell_error(d, CLI_KNOCK_NO_NAME,
               wrong == EAI_SYSTEM ? strerror(errno) : gai_strerror(wrong));
    return;
  }
  const struct addrinfo *a = find_open(d, list, &fd);

  if (a != NULL) {
    tell(d, CLI_KNOCK_OPEN, NULL, 0);
    ask_words(d, a, fd);
  }
  freeaddrinfo(list);
}

/* ---- its parent ------------------------------------------------------------
 */

static void on_news(struct ev_loop *loop, ev_io *watcher, int events)
{
  cli_knock *k = watcher->data;
  cli_knock_news news;
  ssize_t n = read(watcher->fd, &news, sizeof news);

  (void)loop;
  (void)events;
  if (n == (ssize_t)sizeof news)
    k->news = news;
  if (n == (ssize_t)sizeof news || (n < 0 && errno == EINTR))
    return;
  cli_knock_end(k);
  k->over(k, k->arg);
}

static _Noreturn void be_child(door *d, uint16_t port, const int *fds)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  close(fds[0]);
  snprintf(d->port, sizeof d->port, "%u", (unsigned)port);
  d->fd = fds[1];
  knock(d);
  _exit(0);
}

int cli_knock_begin(cli_knock *k, const char *host, uint16_t port,
                    int64_t patience_ms, struct ev_loop *loop)
{
  door d = {.host = host, .until = cli_guard_clock() + patience_ms};
  int fds[2];

  if (pipe(fds) != 0)
    return errno;
  k->pid = fork();
  if (k->pid == 0)
    be_child(&d, port, fds);
  int error = k->pid < 0 ? errno : 0;

  close(fds[1]);
  if (error != 0) {
    close(fds[0]);
    return error;
  }
  k->loop = loop;
  ev_io_init(&k->watcher, on_news, fds[0], EV_READ);
  k->watcher.data = k;
  ev_io_start(loop, &k->watcher);
  return 0;
}

void cli_knock_end(cli_knock *k)
{
  if (k->loop == NULL)
    return;
  ev_io_stop(k->loop, &k->watcher);
  close(k->watcher.fd);
  kill(k->pid, SIGKILL);
  while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
    ;
  k->loop = NULL;
}
