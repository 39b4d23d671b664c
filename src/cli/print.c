/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/print.h"

void cli_say(const char *format, ...)
{
  char line[4096] = "latchkey: ";
  size_t len = strlen(line);
  va_list args;

  va_start(args, format);
  int more = vsnprintf(line + len, sizeof line - len - 1, format, args);
  va_end(args);
  if (more > 0)
    len += (size_t)more;
  if (len > sizeof line - 2)
    len = sizeof line - 2;
  line[len++] = '\n';
  /* One write, so that lines of several processes do not mix. There is nobody
     to tell when it fails. */
  ssize_t n = write(STDERR_FILENO, line, len);

  (void)n;
}

void cli_say_text(cli_text *line)
{
  const char *text = cli_text_end(line);

  cli_say("%s", text == NULL ? lk_error_text(LK_ERR_NO_MEMORY) : text);
  cli_text_free(line);
}

int cli_print(const cli_text *out)
{
  size_t done = 0;

  if (out->failed) {
    cli_say("%s", lk_error_text(LK_ERR_NO_MEMORY));
    return CLI_FAILED;
  }
  while (done < out->len) {
    ssize_t n = write(STDOUT_FILENO, out->at + done, out->len - done);

    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      cli_say("cannot write to standard output: %s", strerror(errno));
      return CLI_FAILED;
    }
    done += (size_t)n;
  }
  return CLI_DONE;
}

int cli_code_of(int err)
{
  switch (err) {
  case 0: return CLI_DONE;
  case LK_ERR_NO_NODE:
  case LK_ERR_NODE_EXISTS:
  case LK_ERR_BAD_VERSION:
  case LK_ERR_NOT_EMPTY:
  case LK_ERR_NO_CHILDREN_FOR_EPHEMERALS: return CLI_NO;
  default: return CLI_FAILED;
  }
}

const char *cli_hint(int err)
{
  switch (err) {
  case LK_ERR_CONNECT:
  case LK_ERR_DEADLINE:
    return "; is a ZooKeeper server running there? -z names another";
  case LK_ERR_RESOLVE: return "; -z names other servers";
  case LK_ERR_BAD_HOSTS: return "; -z takes host:port,host:port/chroot";
  case LK_ERR_PROTOCOL:
  case LK_ERR_MARSHALLING:
  case LK_ERR_REFUSED:
    return "; is that the client port of a ZooKeeper server, and without TLS?";
  case LK_ERR_AUTH_FAILED: return "; check the lines of --auth-file";
  case LK_ERR_NO_AUTH:
    return "; --auth-file gives an identity that the access list names";
  case LK_ERR_INVALID_ACL: return "; check the access list (--acl; creator needs --auth-file)";
  case LK_ERR_BAD_PATH:
    return "; a path begins with /, does not end with one, and has no empty, "
           ". or .. part";
  case LK_ERR_NO_CHILDREN_FOR_EPHEMERALS:
    return "; choose a path that is not below an ephemeral node";
  case LK_ERR_TOO_BIG: return "; servers take 1 MiB at most";
  case LK_ERR_NOT_EMPTY: return "; delete its children first, or with -r";
  case LK_ERR_BAD_VERSION: return "; read it again";
  case LK_ERR_LOSS:
  case LK_ERR_NOT_SENT:
  case LK_ERR_THROTTLED:
  case LK_ERR_SESSION_EXPIRED: return "; try again";
  case LK_ERR_QUOTA_EXCEEDED: return "; delete something there, or raise it";
  case LK_ERR_UNKNOWN: return "; look, and try again if it is not";
  case LK_ERR_UNIMPLEMENTED:
    return "; a newer server is needed (3.5.1 for containers, 3.6 to watch), or "
           "for -t one with zookeeper.extendedTypesEnabled";
  default: return "";
  }
}

int cli_complain(const char *verb, const char *path, int err)
{
  cli_text clean = {0};

  cli_text_clean(&clean, lk_text(path));
  const char *text = cli_text_end(&clean);

  cli_say("%s %s: %s%s", verb, text == NULL ? "" : text, lk_error_text(err),
          cli_hint(err));
  cli_text_free(&clean);
  return cli_code_of(err);
}
