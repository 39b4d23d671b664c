/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/real_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, BROKEN = 99 };

static void fail_test(const char *what)
{
  fprintf(stderr, "script/server: %s: %s\n", what, strerror(errno));
  exit(BROKEN);
}

static bool wants_tls(void)
{
  const char *text = getenv("LATCHKEY_TEST_TLS");

  return text != NULL && strcmp(text, "1") == 0;
}

/* Called in the child: execute script/server with these pipes. */
static void become_script(const char *const *options, int in, int out)
{
  const char *root = getenv("abs_top_srcdir");
  const char *argv[32] = {"script/server", "run"};
  const size_t most = sizeof argv / sizeof argv[0] - 1; /* NULL at the end */
  char path[4096];
  size_t n = 2;

  if (wants_tls())
    argv[n++] = "--tls";
  for (; *options != NULL && n < most; options++)
    argv[n++] = *options;
  argv[n] = NULL;
  snprintf(path, sizeof(path), "%s/script/server", root == NULL ? "." : root);
  if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
    execv(path, (char **)(uintptr_t)argv);
  fprintf(stderr, "%s: %s\n", path, strerror(errno));
  _exit(BROKEN);
}

/* Read a line without its end, and truncate it to `size`. false: there is no
   line. */
static bool read_line(int fd, char *line, size_t size)
{
  size_t len = 0;
  char c;
  ssize_t got;

  for (;;) {
    got = read(fd, &c, 1);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return false;
    if (c == '\n')
      break;
    if (len + 1 < size)
      line[len++] = c;
  }
  line[len] = '\0';
  return true;
}

/* Wait until the process has ended; returns its exit code. */
static int wait_for_exit(pid_t pid)
{
  int status = 0;

  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : BROKEN;
}

/* Set `hosts`. With TLS, make OpenSSL trust the servers' CA. `facts` is the
   line that script/server has printed. */
static void choose_hosts(server *s, const char *facts)
{
  static const char scheme[] = "tls://";
  const size_t scheme_len = sizeof scheme - 1;
  const char *tls = strstr(facts, " tls=");
  char path[512];

  snprintf(s->hosts, sizeof(s->hosts), "%s", s->connect);
  if (!wants_tls())
    return;
  if (tls == NULL || sscanf(tls, " tls=%249s", s->hosts + scheme_len) != 1) {
    fprintf(stderr, "script/server: no TLS: %s\n", facts);
    exit(BROKEN);
  }
  memcpy(s->hosts, scheme, scheme_len);
  snprintf(path, sizeof(path), "%s/tls/ca.crt", s->dir);
  setenv("SSL_CERT_FILE", path, 1);
}

void server_start(server *s, const char *const *options)
{
  int in[2], out[2], result; /* pipes to and from script/server */
  char facts[1024];

  if (pipe(in) != 0 || pipe(out) != 0)
    fail_test("pipe");
  /* The servers end when script/server finds its standard input closed, so no
     other child may inherit the writing end. */
  fcntl(in[1], F_SETFD, FD_CLOEXEC);
  fcntl(out[0], F_SETFD, FD_CLOEXEC);
  s->pid = fork();
  if (s->pid < 0)
    fail_test("fork");
  if (s->pid == 0)
    become_script(options, in[0], out[1]);
  close(in[0]);
  close(out[1]);
  s->to = in[1];
  s->from = out[0];
  if (!read_line(s->from, facts, sizeof(facts))) {
    result = wait_for_exit(s->pid);
    exit(result == SKIPPED ? SKIPPED : BROKEN);
  }
  if (sscanf(facts, "connect=%255s pids=%*s dir=%255s", s->connect, s->dir) !=
      2) {
    fprintf(stderr, "script/server: unexpected facts: %s\n", facts);
    exit(BROKEN);
  }
  choose_hosts(s, facts);
}

const char *server_ask(server *s, const char *format, ...)
{
  char command[128], line[512];
  va_list args;
  int len;

  va_start(args, format);
  len = vsnprintf(command, sizeof(command) - 1, format, args);
  va_end(args);
  if (len < 0 || (size_t)len >= sizeof(command) - 1) {
    fprintf(stderr, "script/server: command too long\n");
    exit(BROKEN);
  }
  command[len] = '\n';
  if (write(s->to, command, (size_t)len + 1) != len + 1)
    fail_test("write");
  command[len] = '\0';
  if (!read_line(s->from, line, sizeof(line)))
    strcpy(line, "no answer");
  if (strncmp(line, "ok", 2) != 0) {
    fprintf(stderr, "script/server: %s: %s\n", command, line);
    exit(BROKEN);
  }
  const char *answer = line + 2; /* behind "ok" */

  if (*answer == ' ')
    answer++;
  strcpy(s->answer, answer);
  return s->answer;
}

int server_in_mode(server *s, const char *mode)
{
  int count = 1;

  for (const char *c = s->connect; *c != '\0'; c++)
    if (*c == ',') /* between two servers */
      count++;
  for (int n = 1; n <= count; n++)
    if (strcmp(server_ask(s, "mode %d", n), mode) == 0)
      return n;
  return 0;
}

void server_end(server *s)
{
  close(s->to);
  wait_for_exit(s->pid);
  close(s->from);
}
