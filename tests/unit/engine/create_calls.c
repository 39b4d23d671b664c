/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The requests of creates. All flags and the limits of the TTL are tried here,
   without a server: an invalid TTL would crash a real server, and crash it
   again at each restart. */

#include "proto/engine/client.h"
#include "proto/wire/multi.h"
#include "proto/wire/opcode.h"
#include "support/harness.h"
#include "support/suite.h"
#include "support/wire.h"

#include <limits.h>

static harness *h;

static void receive(lk_buf *b)
{
  harness_receive(h, lk__buf_bytes(b), lk__buf_len(b));
  lk__buf_consume(b, lk__buf_len(b));
}

static void begin(void)
{
  lk_client_config c = {.size = sizeof c, .outstanding_limit = 100000};
  lk_buf b = wire_buf();

  h = calloc(1, sizeof *h);
  failing_mem_init(&h->mem);
  ck_assert_int_eq(harness_init(h, &c), 0);
  harness_settle(h);
  harness_connected(h);
  wire_welcome(&b, 7, 30000);
  receive(&b);
  lk__buf_free(&b);
}

static void end(void)
{
  harness_done(h);
  free(h);
}

enum { NO_REQUEST = 0 };

/* The opcode of the single frame in the output; `in` then stands behind the
   header. Returns NO_REQUEST if there is no output. */
static int32_t opcode_in_output(lk_reader *in)
{
  lk_bytes bytes = lk_client_pending(h->client);

  if (bytes.len == 0)
    return NO_REQUEST;
  lk__reader_init(in, bytes.at, bytes.len);
  ck_assert_uint_eq((size_t)lk__reader_int(in), bytes.len - sizeof(int32_t));
  lk__reader_int(in); /* xid */
  return lk__reader_int(in);
}

static void mark_output_sent(void)
{
  lk_bytes bytes = lk_client_pending(h->client);

  lk_client_sent(h->client, h->want.attempt, bytes.len);
}

#define SMALLEST_TTL_TOO_LARGE (INT64_C(1) << 40)

static const int64_t ttls[] = {INT64_MIN,
                               -SMALLEST_TTL_TOO_LARGE,
                               -1,
                               0,
                               1,
                               2,
                               1000,
                               SMALLEST_TTL_TOO_LARGE - 2,
                               SMALLEST_TTL_TOO_LARGE - 1,
                               SMALLEST_TTL_TOO_LARGE,
                               SMALLEST_TTL_TOO_LARGE + 1,
                               INT64_MAX};
enum { NTTLS = sizeof ttls / sizeof ttls[0] };

enum { NFLAGS = 300 };

/* The i-th value of the flags to be tried: five special ones, then all from -95
   to 199. */
static int nth_flags(int i)
{
  /* The low byte of three of them is 5, as in the flags of a TTL. */
  static const int special[] = {INT_MIN, INT_MIN + 5, INT_MAX, 0x105, 0x10005};

  return i < 5 ? special[i] : i - 100;
}

static bool is_valid_with_ttl(int flags, int64_t ttl)
{
  return (flags == LK_PERSISTENT || flags == LK_SEQUENTIAL) && ttl >= 1 &&
         ttl < SMALLEST_TTL_TOO_LARGE;
}

/* Check that a server can accept this createTTL. */
static void expect_create_ttl(const struct lk_create_ttl_request *r, int flags,
                              int64_t ttl)
{
  ck_assert_int_eq(r->create.flags, flags == LK_SEQUENTIAL
                                        ? LK_FLAGS_TTL_SEQUENTIAL
                                        : LK_FLAGS_TTL);
  ck_assert_int_eq(r->ttl_ms, ttl);
  ck_assert_int_ge(r->ttl_ms, 1);
  ck_assert_int_lt(r->ttl_ms, SMALLEST_TTL_TOO_LARGE);
}

static void try_create_ttl(int flags, int64_t ttl)
{
  struct lk_create_ttl_request r;
  lk_arena arena = {.mem = &lk__mem_libc};
  lk_reader in;
  int err = lk_create_ttl(h->client, "/a", lk_text("x"), NULL, flags, ttl, NULL,
                          NULL, NULL);

  ck_assert_int_eq(err,
                   is_valid_with_ttl(flags, ttl) ? 0 : LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(opcode_in_output(&in),
                   err == 0 ? LK_OPCODE_CREATE_TTL : NO_REQUEST);
  if (err != 0)
    return;
  ck_assert_int_eq(
      lk__record_decode(&lk__create_ttl_request_record, &r, &in, &arena), 0);
  ck_assert_uint_eq(lk__reader_left(&in), 0);
  expect_create_ttl(&r, flags, ttl);
  lk__arena_free(&arena);
  mark_output_sent();
}

static void try_in_multi(int flags, int64_t ttl)
{
  lk_op ops[] = {lk_op_check("/", -1),
                 lk_op_create_ttl("/a", lk_text("x"), NULL, flags, ttl)};
  lk_arena arena = {.mem = &lk__mem_libc};
  lk_operation decoded;
  lk_reader in;
  int err = lk_multi(h->client, ops, 2, NULL, NULL, NULL);

  ck_assert_int_eq(err,
                   is_valid_with_ttl(flags, ttl) ? 0 : LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(opcode_in_output(&in),
                   err == 0 ? LK_OPCODE_MULTI : NO_REQUEST);
  if (err != 0)
    return;
  ck_assert(
      lk__operation_decode(&in, LK_OPERATIONS_OF_REQUEST, &arena, &decoded));
  ck_assert(
      lk__operation_decode(&in, LK_OPERATIONS_OF_REQUEST, &arena, &decoded));
  ck_assert_int_eq(decoded.type, LK_OPCODE_CREATE_TTL);
  expect_create_ttl(&decoded.body.create_ttl, flags, ttl);
  lk__arena_free(&arena);
  mark_output_sent();
}

START_TEST(invalid_ttl_is_refused_alone_and_in_a_multi)
{
  begin();
  for (int i = 0; i < NFLAGS; i++) {
    for (int k = 0; k < NTTLS; k++) {
      try_create_ttl(nth_flags(i), ttls[k]);
      try_in_multi(nth_flags(i), ttls[k]);
    }
  }
  end();
}
END_TEST

/* lk_multi() checks each operation. lk__multi_encode() does so again. */
START_TEST(invalid_ttl_is_not_encoded_in_a_multi)
{
  for (int i = 0; i < NFLAGS; i++) {
    for (int k = 0; k < NTTLS; k++) {
      const char *no_chroot = "";
      lk_op op =
          lk_op_create_ttl("/a", lk_text("x"), NULL, nth_flags(i), ttls[k]);
      lk_writer out;

      lk__writer_init(&out, NULL, 0);
      lk__multi_encode(&out, &op, 1, no_chroot);
      ck_assert_int_eq(out.err, is_valid_with_ttl(nth_flags(i), ttls[k])
                                    ? 0
                                    : LK_ERR_BAD_ARGUMENT);
    }
  }
}
END_TEST

static int32_t opcode_for(int flags, bool with_stat)
{
  if (flags == LK_CONTAINER)
    return LK_OPCODE_CREATE_CONTAINER;
  if (flags < 0 || flags > (LK_EPHEMERAL | LK_SEQUENTIAL))
    return NO_REQUEST;
  return with_stat ? LK_OPCODE_CREATE2 : LK_OPCODE_CREATE;
}

START_TEST(create_has_the_opcode_of_its_flags_or_is_refused)
{
  lk_arena arena = {.mem = &lk__mem_libc};

  begin();
  for (int i = 0; i < NFLAGS; i++) {
    for (int with_stat = 0; with_stat < 2; with_stat++) {
      struct lk_create_request r;
      int flags = nth_flags(i);
      int32_t op = opcode_for(flags, with_stat);
      lk_reader in;
      int err = (with_stat ? lk_create2 : lk_create)(
          h->client, "/a", lk_text("x"), NULL, flags, NULL, NULL, NULL);

      ck_assert_int_eq(err, op == NO_REQUEST ? LK_ERR_BAD_ARGUMENT : 0);
      ck_assert_int_eq(opcode_in_output(&in), op);
      if (err != 0)
        continue;
      lk__record_decode(&lk__create_request_record, &r, &in, &arena);
      ck_assert_int_eq(r.flags, flags);
      mark_output_sent();
    }
  }
  lk__arena_free(&arena);
  end();
}
END_TEST

START_TEST(read_of_unknown_type_is_refused)
{
  lk_read r = lk_read_get("/a");

  begin();
  for (r.type = -1; r.type <= LK_READ_GET_CHILDREN + 1; r.type++) {
    bool known = r.type == LK_READ_GET || r.type == LK_READ_GET_CHILDREN;

    ck_assert_int_eq(lk_multi_read(h->client, &r, 1, NULL, NULL, NULL),
                     known ? 0 : LK_ERR_BAD_ARGUMENT);
  }
  end();
}
END_TEST

START_TEST(operation_that_uses_a_reserved_word_is_refused)
{
  begin();
  for (int i = 0; i < 2; i++) {
    lk_op op = lk_op_check("/a", -1);
    lk_read r = lk_read_get("/a");

    op.reserved[i] = 1;
    r.reserved[i] = (uint64_t)1 << 63;
    ck_assert_int_eq(lk_multi(h->client, &op, 1, NULL, NULL, NULL),
                     LK_ERR_BAD_ARGUMENT);
    ck_assert_int_eq(lk_multi_read(h->client, &r, 1, NULL, NULL, NULL),
                     LK_ERR_BAD_ARGUMENT);
  }
  end();
}
END_TEST

SUITE("create_calls", invalid_ttl_is_refused_alone_and_in_a_multi,
      invalid_ttl_is_not_encoded_in_a_multi,
      create_has_the_opcode_of_its_flags_or_is_refused,
      read_of_unknown_type_is_refused,
      operation_that_uses_a_reserved_word_is_refused)
