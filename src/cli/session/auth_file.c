/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options/acl_spec.h"
#include "cli/session/auth_file.h"

/* Size limit of an auth file. */
enum { MOST_BYTES = 1 << 20 };

/* Overwrites memory with zeroes. A compiler may remove a memset() before
   free(). */
static void wipe_memory(void *at, size_t len)
{
  volatile unsigned char *byte = at;

  while (len-- > 0)
    *byte++ = 0;
}

void cli_auth_file_free(cli_auth_file *i)
{
  if (i->at != NULL)
    wipe_memory(i->at, i->len);
  free(i->at);
  i->at = NULL;
  i->len = 0;
  i->sasl = false;
}

/* Reads into one block of full size: a realloc() would leave copies of secrets
   in freed memory. */
static bool read_to_end(cli_auth_file *i, int fd)
{
  ssize_t n = 1;

  i->at = malloc(MOST_BYTES);
  if (i->at == NULL)
    return false;
  while (i->len < MOST_BYTES && n > 0) {
    n = read(fd, i->at + i->len, MOST_BYTES - i->len);
    if (n > 0)
      i->len += (size_t)n;
  }
  return n >= 0;
}

static bool read_auth_file(cli_auth_file *i)
{
  int fd = open(i->name, O_RDONLY | O_CLOEXEC);
  struct stat st;

  if (fd < 0)
    return false;
  bool ok = fstat(fd, &st) == 0 && read_to_end(i, fd);
  int error = errno;

  close(fd);
  errno = error;
  i->readable_by_others =
      ok && S_ISREG(st.st_mode) && (st.st_mode & (S_IRWXG | S_IRWXO)) != 0;
  return ok;
}

static bool is_sasl_scheme(lk_bytes scheme)
{
  return scheme.len == 4 && memcmp(scheme.at, "sasl", 4) == 0;
}

static int give_sasl_password(char *out, size_t size, void *arg)
{
  const cli_auth_file *i = arg;

  if (i->password.len > size)
    return LK_ERR_TOO_BIG;
  memcpy(out, i->password.at, i->password.len);
  return (int)i->password.len;
}

/* Stores the credentials "USER:PASSWORD" of the line for SASL. Returns a
   complaint, or NULL. */
static const char *store_sasl_line(cli_auth_file *i, lk_bytes credentials)
{
  const char *user = credentials.at;
  const char *colon = memchr(user, ':', credentials.len);
  size_t len = colon == NULL ? 0 : (size_t)(colon - user);

  if (i->sasl)
    return "has more than one sasl line";
  if (len == 0 || len + 1 == credentials.len)
    return "has a sasl line that is not sasl:USER:PASSWORD";
  if (len >= sizeof i->user || credentials.len - len - 1 > LK_SASL_PASSWORD_MAX)
    return "has a sasl line that is too long";
  if (lk_sasl_digest_md5() == NULL)
    return "has a sasl line, but this latchkey was built without libgsasl";
  memcpy(i->user, user, len);
  i->user[len] = '\0';
  i->password = lk_bytes_of(colon + 1, credentials.len - len - 1);
  i->config = (lk_sasl_config){.size = sizeof i->config,
                               .user = i->user,
                               .password = give_sasl_password,
                               .password_arg = i};
  i->sasl = true;
  return NULL;
}

/* Stores the line for SASL, if there is one. Returns a complaint, or NULL. */
static const char *find_sasl_line(cli_auth_file *i)
{
  lk_bytes text = lk_bytes_of(i->at, i->len), scheme, credentials;
  const char *wrong = NULL;

  while (wrong == NULL &&
         cli_auth_file_next_line(&text, &scheme, &credentials)) {
    if (is_sasl_scheme(scheme))
      wrong = store_sasl_line(i, credentials);
  }
  return wrong;
}

bool cli_auth_file_read(cli_auth_file *i, const char *name, cli_text *complaint)
{
  if (name == NULL || i->name != NULL)
    return true;
  i->name = name;
  if (!read_auth_file(i)) {
    cli_text_printf(complaint, "--auth-file: cannot read %s: %s", name,
                    strerror(errno));
    return false;
  }
  const char *wrong = find_sasl_line(i);

  if (wrong != NULL)
    cli_text_printf(complaint, "--auth-file: %s %s", name, wrong);
  return wrong == NULL;
}

const lk_sasl_config *cli_auth_file_sasl(const cli_auth_file *i)
{
  return i->sasl ? &i->config : NULL;
}

static bool add_identity(const cli_auth_file *i, lk_client *c, lk_bytes scheme,
                         lk_bytes credentials, cli_text *complaint)
{
  char word[64];

  if (scheme.len == 0 || scheme.len >= sizeof word) {
    cli_text_printf(complaint,
                    "--auth-file: a line of %s is not scheme:credentials, "
                    "such as digest:user:password",
                    i->name);
    return false;
  }
  memcpy(word, scheme.at, scheme.len);
  word[scheme.len] = '\0';
  int err = lk_add_auth(c, word, credentials, NULL, NULL);

  if (err == 0)
    return true;
  cli_text_printf(complaint, "--auth-file: %s: %s", i->name,
                  lk_error_text(err));
  return false;
}

bool cli_auth_file_add_to(cli_auth_file *i, lk_client *c, cli_text *complaint)
{
  lk_bytes text = lk_bytes_of(i->at, i->len), scheme, credentials;
  bool ok = true;

  while (ok && cli_auth_file_next_line(&text, &scheme, &credentials))
    ok = is_sasl_scheme(scheme) ||
         add_identity(i, c, scheme, credentials, complaint);
  /* The password for SASL points into the contents. */
  if (!i->sasl)
    cli_auth_file_free(i);
  return ok;
}
