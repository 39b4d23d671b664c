/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/tls_bio.h"

/* What a function of the BIO returns after a call of TCP: the number of bytes,
   0 at the end, or -1. `retry` is the flag that tells OpenSSL to try again. */
static int bio_result(BIO *bio, lk_flow flow, size_t n, int retry)
{
  lk_tls_bio *b = BIO_get_data(bio);

  BIO_clear_retry_flags(bio);
  if (n > 0)
    return (int)n;
  if (flow == LK_FLOW_READ || flow == LK_FLOW_WRITE)
    BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
  if (flow == LK_FLOW_FAILED)
    b->sys_errno = b->tcp->sys_errno;
  b->ended = flow == LK_FLOW_END;
  return b->ended ? 0 : -1;
}

static int bio_write(BIO *bio, const char *bytes, int len)
{
  const lk_tls_bio *b = BIO_get_data(bio);
  size_t done;
  lk_flow flow = lk_transport_tcp()->send(b->tcp, bytes, (size_t)len, &done);

  return bio_result(bio, flow, done, BIO_FLAGS_WRITE);
}

/* After a read that did not fill its room the socket is empty. Further reads in
   the same step would be system calls in vain. */
static int bio_read(BIO *bio, char *room, int size)
{
  lk_tls_bio *b = BIO_get_data(bio);
  size_t got = 0;
  lk_flow flow = LK_FLOW_READ;

  if (!b->drained && b->reads_left > 0) {
    b->reads_left--;
    flow = lk_transport_tcp()->recv(b->tcp, room, (size_t)size, &got);
    b->drained = got > 0 && got < (size_t)size;
  }
  b->received = b->received || got > 0;
  return bio_result(bio, flow, got, BIO_FLAGS_READ);
}

/* OpenSSL asks for a flush, for which there is nothing to do, and whether the
   server has closed TCP. All other commands are refused by 0. */
static long bio_control(BIO *bio, int command, long number, void *at)
{
  const lk_tls_bio *b = BIO_get_data(bio);

  (void)number;
  (void)at;
  return command == BIO_CTRL_FLUSH || (command == BIO_CTRL_EOF && b->ended);
}

static bool bio_make_method(lk_tls_bio *b)
{
  if (b->method != NULL)
    return true;
  b->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "latchkey");
  if (b->method == NULL)
    return false;
  BIO_meth_set_write(b->method, bio_write);
  BIO_meth_set_read(b->method, bio_read);
  BIO_meth_set_ctrl(b->method, bio_control);
  return true;
}

void lk__tls_bio_reset(lk_tls_bio *b, lk_transport *tcp)
{
  *b = (lk_tls_bio){.tcp = tcp, .method = b->method};
}

BIO *lk__tls_bio_new(lk_tls_bio *b)
{
  BIO *bio = bio_make_method(b) ? BIO_new(b->method) : NULL;

  if (bio == NULL)
    return NULL;
  BIO_set_data(bio, b);
  BIO_set_init(bio, 1);
  return bio;
}

void lk__tls_bio_begin_step(lk_tls_bio *b, unsigned reads)
{
  b->drained = false;
  b->reads_left = reads;
}

void lk__tls_bio_free(lk_tls_bio *b)
{
  BIO_meth_free(b->method);
  b->method = NULL;
}
