/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options/acl_spec.h"
#include "cli/session/auth_file.h"

/* More bytes of an auth file are not read. */
enum { MAX_FILE_BYTES = 1 << 20 };

/* Overwrites memory with zeroes. A compiler may remove a memset() before
   free(). */
static void wipe_memory(void *at, size_t len)
{
  volatile unsigned char *byte = at;

  while (len-- > 0)
    *byte++ = 0;
}

void cli_auth_file_free(cli_auth_file *file)
{
  if (file->at != NULL)
    wipe_memory(file->at, file->len);
  free(file->at);
  file->at = NULL;
  file->len = 0;
  file->sasl = false;
}

/* Reads into one block of full size: a realloc() would leave copies of secrets
   in freed memory. */
static bool read_to_end(cli_auth_file *file, int fd)
{
  file->at = malloc(MAX_FILE_BYTES);
  if (file->at == NULL)
    return false;
  while (file->len < MAX_FILE_BYTES) {
    ssize_t n = read(fd, file->at + file->len, MAX_FILE_BYTES - file->len);

    if (n <= 0)
      return n == 0; /* end of file */
    file->len += (size_t)n;
  }
  return true;
}

static bool read_auth_file(cli_auth_file *file)
{
  int fd = open(file->name, O_RDONLY | O_CLOEXEC);
  struct stat st;

  if (fd < 0)
    return false;
  bool ok = fstat(fd, &st) == 0 && read_to_end(file, fd);
  int error = errno;

  close(fd);
  errno = error;
  file->readable_by_others =
      ok && S_ISREG(st.st_mode) && (st.st_mode & (S_IRWXG | S_IRWXO)) != 0;
  return ok;
}

static bool is_sasl_scheme(lk_bytes scheme)
{
  return scheme.len == strlen("sasl") &&
         memcmp(scheme.at, "sasl", scheme.len) == 0;
}

static int give_sasl_password(char *out, size_t size, void *arg)
{
  const cli_auth_file *file = arg;

  if (file->password.len > size)
    return LK_ERR_TOO_BIG;
  memcpy(out, file->password.at, file->password.len);
  return (int)file->password.len;
}

/* Stores the credentials "USER:PASSWORD" of the line for SASL. Returns a
   complaint, or NULL. */
static const char *store_sasl_line(cli_auth_file *file, lk_bytes credentials)
{
  const char *user = credentials.at;
  const char *colon = memchr(user, ':', credentials.len);
  size_t user_len = colon == NULL ? 0 : (size_t)(colon - user);
  size_t password_len = colon == NULL ? 0 : credentials.len - user_len - 1;

  if (file->sasl)
    return "has more than one sasl line";
  if (user_len == 0 || password_len == 0)
    return "has a sasl line that is not sasl:USER:PASSWORD";
  if (user_len >= sizeof file->user || password_len > LK_SASL_PASSWORD_MAX)
    return "has a sasl line that is too long";
  if (lk_sasl_digest_md5() == NULL)
    return "has a sasl line, but this latchkey was built without libgsasl";
  memcpy(file->user, user, user_len);
  file->user[user_len] = '\0';
  file->password = lk_bytes_of(colon + 1, password_len);
  file->config = (lk_sasl_config){.size = sizeof file->config,
                                  .user = file->user,
                                  .password = give_sasl_password,
                                  .password_arg = file};
  file->sasl = true;
  return NULL;
}

/* Finds the line for SASL, if there is one, and stores its credentials. Returns
   a complaint, or NULL. */
static const char *find_sasl_line(cli_auth_file *file)
{
  lk_bytes text = lk_bytes_of(file->at, file->len), scheme, credentials;
  const char *wrong = NULL;

  while (wrong == NULL &&
         cli_auth_file_next_line(&text, &scheme, &credentials)) {
    if (is_sasl_scheme(scheme))
      wrong = store_sasl_line(file, credentials);
  }
  return wrong;
}

static bool copy_contents(cli_auth_file *file, const cli_auth_file *kept)
{
  file->at = malloc(MAX_FILE_BYTES);
  if (file->at == NULL)
    return false;
  memcpy(file->at, kept->at, kept->len);
  file->len = kept->len;
  return true;
}

static bool get_contents(cli_auth_file *file, const cli_auth_file *kept,
                         cli_text *complaint)
{
  if (kept == NULL ? read_auth_file(file) : copy_contents(file, kept))
    return true;
  cli_text_printf(complaint, "--auth-file: cannot read %s: %s", file->name,
                  strerror(errno));
  return false;
}

bool cli_auth_file_keep(cli_auth_file *file, const char *name,
                        cli_text *complaint)
{
  const cli_auth_file *none_kept = NULL;
  struct stat st;

  *file = (cli_auth_file){.name = name};
  if (name == NULL || stat(name, &st) != 0 || S_ISREG(st.st_mode))
    return true;
  return get_contents(file, none_kept, complaint);
}

bool cli_auth_file_read(cli_auth_file *file, const char *name,
                        const cli_auth_file *kept, cli_text *complaint)
{
  if (name == NULL || file->name != NULL) /* no file, or read before */
    return true;
  file->name = name;
  if (!get_contents(file, kept, complaint))
    return false;
  const char *wrong = find_sasl_line(file);

  if (wrong != NULL)
    cli_text_printf(complaint, "--auth-file: %s %s", name, wrong);
  return wrong == NULL;
}

const lk_sasl_config *cli_auth_file_sasl(const cli_auth_file *file)
{
  return file->sasl ? &file->config : NULL;
}

static bool add_identity(const cli_auth_file *file, lk_client *c,
                         lk_bytes scheme, lk_bytes credentials,
                         cli_text *complaint)
{
  char scheme_text[64];

  if (scheme.len == 0 || scheme.len >= sizeof scheme_text) {
    cli_text_printf(complaint,
                    "--auth-file: a line of %s is not scheme:credentials, "
                    "such as digest:user:password",
                    file->name);
    return false;
  }
  memcpy(scheme_text, scheme.at, scheme.len);
  scheme_text[scheme.len] = '\0';
  /* No callback: a refusal ends the session with LK_STATE_AUTH_FAILED. */
  int err = lk_add_auth(c, scheme_text, credentials, NULL, NULL);

  if (err == 0)
    return true;
  cli_text_printf(complaint, "--auth-file: %s: %s", file->name,
                  lk_error_text(err));
  return false;
}

bool cli_auth_file_add_to(cli_auth_file *file, lk_client *c,
                          cli_text *complaint)
{
  lk_bytes text = lk_bytes_of(file->at, file->len), scheme, credentials;
  bool ok = true;

  while (ok && cli_auth_file_next_line(&text, &scheme, &credentials))
    ok = is_sasl_scheme(scheme) ||
         add_identity(file, c, scheme, credentials, complaint);
  /* The password for SASL points into the contents. */
  if (!file->sasl)
    cli_auth_file_free(file);
  return ok;
}
