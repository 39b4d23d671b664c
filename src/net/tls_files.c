/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/tls_files.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/tls_error.h"

/* The largest files are lists of CAs: one of all public CAs has some 250,000
   bytes. */
enum { MAX_FILE_SIZE = 16 * 1024 * 1024, INITIAL_BUFFER_SIZE = 16 * 1024 };

static const char *path_of(const lk_tls_config *c, enum lk_tls_file which)
{
  switch (which) {
  case LK_TLS_FILE_CA: return c->ca_file;
  case LK_TLS_FILE_CERT: return c->cert_file;
  case LK_TLS_FILE_KEY: return c->key_file;
  case LK_TLS_FILE_CRL: return c->crl_file;
  case LK_TLS_FILE_PASSWORD: return c->password_file;
  case LK_TLS_FILE_COUNT: break;
  }
  return NULL;
}

static void tls_file_set_error(lk_transport *t, const char *path, int error)
{
  char what[300];

  snprintf(what, sizeof what, "TLS: cannot read %s", path);
  (void)lk__transport_fail(t, LK_ERR_TLS, what, error);
  t->cause = LK_TLS_FILES;
}

/* Move `len` bytes to a new buffer of `size`. The old one is wiped and freed,
   since it may hold a key. NULL: no memory. */
static unsigned char *buffer_grow(unsigned char *old, size_t len, size_t size)
{
  unsigned char *new = malloc(size);

  if (new != NULL && len > 0)
    memcpy(new, old, len);
  if (old != NULL)
    lk__mem_wipe(old, len);
  free(old);
  return new;
}

/* Returns 0 or an errno. In either case `out` gets what has been read, which
   the caller has to free. */
static int read_all(int fd, lk_bytes *out)
{
  unsigned char *at = NULL;
  size_t len = 0, room = 0;

  for (;;) {
    if (len == room) {
      if (room == MAX_FILE_SIZE)
        return EFBIG;
      room = room == 0 ? INITIAL_BUFFER_SIZE : 2 * room;
      at = buffer_grow(at, len, room);
      if (at == NULL) {
        *out = lk_bytes_of(NULL, 0); /* the old buffer was freed */
        return ENOMEM;
      }
    }
    ssize_t n = read(fd, at + len, room - len);

    if (n > 0)
      len += (size_t)n;
    *out = lk_bytes_of(at, len);
    if (n == 0)
      return 0;
    if (n < 0 && errno != EINTR)
      return errno;
  }
}

/* Returns 0 or an errno. O_NONBLOCK is set because opening a FIFO would
   otherwise wait for a writer. */
static int read_file(const char *path, lk_bytes *out)
{
  struct stat st;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  int error = 0;

  if (fd < 0)
    return errno;
  if (fstat(fd, &st) != 0)
    error = errno;
  else if (!S_ISREG(st.st_mode))
    error = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
  else
    error = read_all(fd, out);
  close(fd);
  return error;
}

bool lk__tls_files_read(lk_transport *t, lk_tls_files *f,
                        const lk_tls_config *config)
{
  memset(f, 0, sizeof *f);
  for (int i = 0; i < LK_TLS_FILE_COUNT; i++) {
    const char *path = path_of(config, (enum lk_tls_file)i);
    int error = path == NULL ? 0 : read_file(path, &f->contents[i]);

    if (error != 0) {
      tls_file_set_error(t, path, error);
      return false;
    }
  }
  return true;
}

void lk__tls_files_free(lk_tls_files *f)
{
  for (int i = 0; i < LK_TLS_FILE_COUNT; i++) {
    void *at = (void *)(uintptr_t)f->contents[i].at;

    lk__mem_wipe(at, f->contents[i].len);
    free(at);
    f->contents[i] = lk_bytes_of(NULL, 0);
  }
}

/* ---- the digest ---------------------------------------------------------- */

/* The length goes in front of the bytes: otherwise moving bytes from one option
   to the next would not change the digest. UINT64_MAX stands for no bytes. */
static bool digest_add(EVP_MD_CTX *md, lk_bytes bytes)
{
  uint64_t len = bytes.at == NULL ? UINT64_MAX : bytes.len;

  return EVP_DigestUpdate(md, &len, sizeof len) == 1 &&
         (bytes.len == 0 || EVP_DigestUpdate(md, bytes.at, bytes.len) == 1);
}

bool lk__tls_files_digest(lk_transport *t, const lk_tls_files *f,
                          const lk_tls_config *c,
                          unsigned char out[LK_TLS_DIGEST_LEN])
{
  const unsigned char accepts[] = {c->any_name, c->any_certificate,
                                   c->system_cas};
  EVP_MD_CTX *md = EVP_MD_CTX_new();
  bool ok = md != NULL && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1;

  for (int i = 0; i < LK_TLS_FILE_COUNT; i++)
    ok = ok && digest_add(md, f->contents[i]);
  ok = ok && digest_add(md, c->ca_pem) && digest_add(md, c->cert_pem) &&
       digest_add(md, c->key_pem) && digest_add(md, c->crl_pem) &&
       digest_add(md, lk_text(c->ca_dir)) &&
       digest_add(md, lk_text(c->server_name)) &&
       digest_add(md, lk_bytes_of(accepts, sizeof accepts)) &&
       EVP_DigestFinal_ex(md, out, NULL) == 1;
  EVP_MD_CTX_free(md);
  if (!ok)
    lk__tls_error_set_library(t, "cannot compute a digest");
  return ok;
}
