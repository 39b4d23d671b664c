/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The client's copy of the options of SASL, and wiping the passwords in it. */

#include "base/sized_struct.h"
#include "proto/engine/client.h"
#include "proto/engine/sasl.h"
#include "sasl/password.h"

#include <errno.h>

static size_t text_size(const char *text)
{
  return text == NULL ? 0 : strlen(text) + 1;
}

/* Copy the text to `*room`, which moves behind the copy. NULL stays NULL. */
static const char *copy_text(char **room, const char *text)
{
  size_t size = text_size(text);
  char *copy = *room;

  if (text == NULL)
    return NULL;
  memcpy(copy, text, size);
  *room += size;
  return copy;
}

/* Copy the mechanism that `config` selects; without one, DIGEST-MD5. */
static int find_mechanism(lk_client *c, lk_sasl_mechanism *out,
                          const lk_sasl_config *config)
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_sasl_mechanism);
  const lk_sasl_mechanism *from = config->mechanism;

  if (from == NULL)
    from = lk_sasl_digest_md5();
  if (from == NULL) {
    lk__client_logf(c, LK_LOG_ERROR, LK_ERR_UNIMPLEMENTED,
                    "SASL DIGEST-MD5: this library was built without libgsasl");
    return LK_ERR_UNIMPLEMENTED;
  }
  const char *wrong = lk__sized_struct_copy(&what, out, from);

  if (wrong == NULL && (out->name == NULL || out->start == NULL ||
                        out->step == NULL || out->end == NULL))
    wrong = "lk_sasl_mechanism: a function or the name is missing";
  if (wrong == NULL)
    return 0;
  lk__client_logf(c, LK_LOG_ERROR, LK_ERR_BAD_ARGUMENT, "%s", wrong);
  return LK_ERR_BAD_ARGUMENT;
}

static const char *sasl_complaint(const lk_sasl_config *config)
{
  int sources = (config->password_file != NULL) + (config->password_fd != 0) +
                (config->password != NULL);

  if (sources > 1)
    return "lk_sasl_config has more than one source of a password";
  if (config->password_fd < 0)
    return "lk_sasl_config.password_fd is negative";
  if (config->mechanism == NULL && (config->user == NULL || sources == 0))
    return "lk_sasl_config has no user or no password";
  return NULL;
}

static int copy_config(lk_client *c, lk_sasl_config *out,
                       const lk_sasl_config *from)
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_sasl_config);
  const char *wrong = lk__sized_struct_copy(&what, out, from);

  if (wrong == NULL)
    wrong = sasl_complaint(out);
  if (wrong == NULL)
    return 0;
  lk__client_logf(c, LK_LOG_ERROR, LK_ERR_BAD_ARGUMENT, "%s", wrong);
  return LK_ERR_BAD_ARGUMENT;
}

static const char *password_error_text(int err)
{
  switch (err) {
  case LK_ERR_SYSTEM: return strerror(errno);
  case LK_ERR_TOO_BIG: return "the first line is too long for a password";
  default: return "the first line is empty";
  }
}

/* Read the password into s->stored, if it is in a file or comes from a
 * descriptor. */
static int store_password(lk_client *c, const lk_sasl_config *config)
{
  lk_sasl *s = c->sasl;

  if (config->password_file == NULL && config->password_fd == 0)
    return 0;
  s->stored = lk__mem_new(&c->mem, LK_SASL_PASSWORD_MAX);
  if (s->stored == NULL)
    return LK_ERR_NO_MEMORY;
  int result = lk__password_read(s->stored, LK_SASL_PASSWORD_MAX,
                                 config->password_file, config->password_fd);

  if (result >= 0) {
    s->stored_len = (size_t)result;
    return 0;
  }
  int error = errno; /* the log may change errno */

  if (config->password_file != NULL)
    lk__client_logf(c, LK_LOG_ERROR, result,
                    "cannot read a password from %s: %s", config->password_file,
                    password_error_text(result));
  else
    lk__client_logf(c, LK_LOG_ERROR, result,
                    "cannot read a password from descriptor %d: %s",
                    config->password_fd, password_error_text(result));
  errno = error;
  return result == LK_ERR_SYSTEM ? result : LK_ERR_BAD_ARGUMENT;
}

static lk_sasl *new_sasl(const lk_mem *mem, const lk_sasl_config *config,
                         const lk_sasl_mechanism *mechanism)
{
  const char *service = config->service == NULL ? "zookeeper" : config->service;
  const char *host = config->host == NULL ? "zk-sasl-md5" : config->host;
  lk_sasl *s = lk__mem_new(mem, sizeof *s + text_size(config->user) +
                                    text_size(service) + text_size(host));

  if (s == NULL)
    return NULL;
  char *room = s->texts;

  s->user = copy_text(&room, config->user);
  s->service = copy_text(&room, service);
  s->host = copy_text(&room, host);
  s->mechanism = *mechanism;
  s->mechanism_arg = config->mechanism_arg;
  s->password = config->password;
  s->password_arg = config->password_arg;
  return s;
}

int lk__sasl_new(lk_client *c, const lk_sasl_config *config)
{
  lk_sasl_mechanism mechanism;
  lk_sasl_config own;
  int err = copy_config(c, &own, config);

  if (err == 0)
    err = find_mechanism(c, &mechanism, &own);
  if (err != 0)
    return err;
  c->sasl = new_sasl(&c->mem, &own, &mechanism);
  if (c->sasl == NULL)
    return LK_ERR_NO_MEMORY;
  err = store_password(c, &own);
  if (err != 0) {
    int error = errno; /* the caller reads it after LK_ERR_SYSTEM */

    lk__sasl_free(c);
    errno = error;
  }
  return err;
}

void lk__sasl_free(lk_client *c)
{
  lk_sasl *s = c->sasl;

  if (s == NULL)
    return;
  if (s->stored != NULL)
    lk__mem_wipe(s->stored, LK_SASL_PASSWORD_MAX);
  lk__mem_free(&c->mem, s->stored);
  lk__mem_wipe(s->secret, sizeof s->secret);
  lk__mem_free(&c->mem, s);
  c->sasl = NULL;
}

void lk__sasl_drop(lk_client *c)
{
  lk_sasl *s = c->sasl;

  if (s == NULL || !s->must_end)
    return;
  s->must_end = false;
  s->mechanism.end(s->state);
  lk__mem_wipe(s->secret, sizeof s->secret);
}
