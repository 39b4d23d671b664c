/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/tls_config.h"

#include "base/sized_struct.h"

/* The options of TLS. The client stores a copy for its transport, which reads
 * the files. */

/* The numbers of texts and of PEM blocks in a config. */
enum { TEXTS = 7, PEMS = 4 };

static void list_texts(lk_tls_config *c, const char **at[TEXTS])
{
  at[0] = &c->ca_file;
  at[1] = &c->ca_dir;
  at[2] = &c->cert_file;
  at[3] = &c->key_file;
  at[4] = &c->password_file;
  at[5] = &c->crl_file;
  at[6] = &c->server_name;
}

static void list_pems(lk_tls_config *c, lk_bytes *at[PEMS])
{
  at[0] = &c->ca_pem;
  at[1] = &c->cert_pem;
  at[2] = &c->key_pem;
  at[3] = &c->crl_pem;
}

/* Why these options are invalid, as a line for the log; NULL: they are
   valid. */
static const char *tls_complaint(const lk_tls_config *c)
{
  bool has_cert = c->cert_file != NULL || c->cert_pem.at != NULL;

  if (c->cert_file != NULL && c->cert_pem.at != NULL)
    return "lk_tls_config has both cert_file and cert_pem";
  if (c->key_file != NULL && c->key_pem.at != NULL)
    return "lk_tls_config has both key_file and key_pem";
  if (!has_cert && (c->key_file != NULL || c->key_pem.at != NULL))
    return "lk_tls_config has a key without a certificate";
  if (c->password_file != NULL && c->password != NULL)
    return "lk_tls_config has both password_file and password";
  if (c->server_name != NULL && c->server_name[0] == '\0')
    return "lk_tls_config.server_name is empty";
  /* OpenSSL would accept every name that ends with this one. */
  if (c->server_name != NULL && c->server_name[0] == '.')
    return "lk_tls_config.server_name begins with a dot";
  if (c->server_name != NULL && strlen(c->server_name) > LK_TLS_LONGEST_NAME)
    return "lk_tls_config.server_name has more than 255 bytes";
  return NULL;
}

/* The bytes that copies of all texts and PEM blocks need. */
static size_t size_of_copies(lk_tls_config *c)
{
  const char **texts[TEXTS];
  lk_bytes *pems[PEMS];
  size_t size = 0;

  list_texts(c, texts);
  list_pems(c, pems);
  for (size_t i = 0; i < TEXTS; i++)
    size += *texts[i] == NULL ? 0 : strlen(*texts[i]) + 1;
  for (size_t i = 0; i < PEMS; i++)
    size += pems[i]->len;
  return size;
}

/* Copy `len` bytes to `*at`, which moves behind them. */
static const void *copy_to_room(char **at, const void *from, size_t len)
{
  char *copy = *at;

  if (len > 0)
    memcpy(copy, from, len);
  *at += len;
  return copy;
}

/* Copy all texts and PEM blocks to `room`, and let the config point there. */
static void point_to_copies(lk_tls_config *c, char *room)
{
  const char **texts[TEXTS];
  lk_bytes *pems[PEMS];

  list_texts(c, texts);
  list_pems(c, pems);
  for (size_t i = 0; i < TEXTS; i++) {
    if (*texts[i] != NULL)
      *texts[i] = copy_to_room(&room, *texts[i], strlen(*texts[i]) + 1);
  }
  for (size_t i = 0; i < PEMS; i++) {
    if (pems[i]->at != NULL)
      pems[i]->at = copy_to_room(&room, pems[i]->at, pems[i]->len);
  }
}

int lk__tls_copy(lk_tls_config **out, const lk_mem *mem,
                 const lk_tls_config *from, const char **wrong,
                 char text[LK_SIZE_TEXT_ROOM])
{
  static const lk_sized_struct what = LK_SIZED_STRUCT(lk_tls_config);
  lk_tls_config own;

  *out = NULL;
  lk_size_fault fault = lk__sized_struct_copy(&what, &own, from);

  *wrong = fault == LK_SIZE_OK ? tls_complaint(&own)
                               : lk__sized_struct_text(&what, fault, text);
  if (*wrong != NULL)
    return LK_ERR_BAD_ARGUMENT;
  lk_tls_config *copy = lk__mem_new(mem, sizeof *copy + size_of_copies(&own));

  if (copy == NULL)
    return LK_ERR_NO_MEMORY;
  *copy = own;
  point_to_copies(copy, (char *)(copy + 1)); /* they stand behind the struct */
  *out = copy;
  return 0;
}

void lk__tls_free(const lk_mem *mem, lk_tls_config *config)
{
  if (config == NULL)
    return;
  lk__mem_wipe(config, sizeof *config + size_of_copies(config));
  lk__mem_free(mem, config);
}
