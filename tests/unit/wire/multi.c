/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/multi.h"
#include "support/failing_mem.h"
#include "support/suite.h"
#include "vectors/vectors.h"

static failing_mem mem;
static lk_arena arena;
static lk_op_result *results;
static int outcome; /* the error of the whole transaction */

enum { FRAME_HEADER = 4, REQUEST_HEADER = 8, REPLY_HEADER = 16 };

/* The body of the captured request or reply with this name. */
static lk_bytes captured(const char *name, bool from_server)
{
  static vectors all; /* never freed, since the test's process ends soon */
  size_t skip = FRAME_HEADER + (from_server ? REPLY_HEADER : REQUEST_HEADER);

  if (all.count == 0)
    all = vectors_load(NULL);
  for (size_t i = 0; i < all.count; i++) {
    const vector *v = &all.frames[i];

    if (strcmp(v->name, name) == 0 && v->from_server == from_server)
      return lk_bytes_of(v->bytes + skip, v->len - skip);
  }
  ck_abort_msg("no exchange of that name: %s", name);
  return lk_bytes_of(NULL, 0);
}

static lk_bytes captured_request(const char *name)
{
  return captured(name, false);
}

static lk_bytes captured_reply(const char *name)
{
  return captured(name, true);
}

/* Decode the results of a transaction of `asked` operations. */
static int decode_in_chroot(const char *chroot, size_t asked, const void *bytes,
                            size_t len)
{
  unsigned char *block = exactly(bytes, len);
  lk_reader in;
  int err;

  lk__arena_free(&arena);
  arena.mem = &mem.mem;
  results = NULL;
  outcome = 1;
  lk__reader_init(&in, block, len);
  err = lk__multi_decode(&in, asked, chroot, &arena, &results, &outcome);
  ck_assert_int_eq(err, in.err);
  free(block); /* results must not refer to the frame */
  return err;
}

static int decode_captured(size_t asked, const char *name)
{
  lk_bytes body = captured_reply(name);

  failing_mem_init(&mem);
  return decode_in_chroot("", asked, body.at, body.len);
}

/* ---- requests --------------------------------------------------------- */

static void expect_encoding(const lk_op *ops, size_t count, const char *chroot,
                            const char *name)
{
  lk_bytes body = captured_request(name);
  unsigned char bytes[512];
  lk_writer out;

  lk__writer_init(&out, bytes, sizeof bytes);
  lk__multi_encode(&out, ops, count, chroot);
  ck_assert_int_eq(out.err, 0);
  ck_assert_uint_eq(out.len, body.len);
  ck_assert_mem_eq(bytes, body.at, body.len);
}

START_TEST(operations_are_encoded_as_another_client_sent_them)
{
  lk_op ops[] = {lk_op_create("/g/m1", lk_text("1"), NULL, LK_PERSISTENT),
                 lk_op_create("/g/m2", lk_text("2"), lk_acl_open(), 0),
                 lk_op_set("/g/m1", lk_text("3"), 0), lk_op_check("/g/m2", 0),
                 lk_op_delete("/g/m1", 1)};
  lk_op box = lk_op_create("/g/mbox", lk_text(""), NULL, LK_CONTAINER);

  ops[1].type = LK_OP_CREATE2;
  expect_encoding(ops, 5, "", "multi-ok");
  expect_encoding(&box, 1, "", "multi-container");
  box.type = LK_OP_CREATE2;
  expect_encoding(&box, 1, "", "multi-container");
  expect_encoding(NULL, 0, "", "multi-empty");
}
END_TEST

START_TEST(a_chroot_stands_before_every_path)
{
  lk_op ops[] = {lk_op_create("/m1", lk_text("1"), NULL, LK_PERSISTENT),
                 lk_op_create("/m2", lk_text("2"), NULL, LK_PERSISTENT),
                 lk_op_set("/m1", lk_text("3"), 0), lk_op_check("/m2", 0),
                 lk_op_delete("/m1", 1)};

  ops[1].type = LK_OP_CREATE2;
  expect_encoding(ops, 5, "/g", "multi-ok");
}
END_TEST

/* Check the path that is sent for a single operation. */
static void expect_path(lk_op op, const char *chroot, const char *path)
{
  unsigned char bytes[512];
  lk_writer out;
  lk_reader in;
  lk_operation part;

  failing_mem_init(&mem);
  arena.mem = &mem.mem;
  lk__writer_init(&out, bytes, sizeof bytes);
  lk__multi_encode(&out, &op, 1, chroot);
  lk__reader_init(&in, bytes, out.len);
  ck_assert(lk__operation_decode(&in, LK_OPERATIONS_OF_REQUEST, &arena, &part));
  /* The body of each operation begins with its path. */
  ck_assert_uint_eq(part.body.path.path.len, strlen(path));
  ck_assert_mem_eq(part.body.path.path.at, path, strlen(path));
  lk__arena_free(&arena);
}

START_TEST(the_root_stands_for_the_chroot)
{
  lk_bytes no_data = lk_text(NULL);

  expect_path(lk_op_set("/", no_data, -1), "/app", "/app");
  expect_path(lk_op_set("/", no_data, -1), "", "/");
  expect_path(lk_op_create("/", no_data, NULL, LK_SEQUENTIAL), "/app", "/app/");
  expect_path(lk_op_create("/", no_data, NULL, LK_SEQUENTIAL), "", "/");
  expect_path(lk_op_create("/x/", no_data, NULL, LK_SEQUENTIAL), "/app",
              "/app/x/");
  expect_path(lk_op_create("/", no_data, NULL, LK_EPHEMERAL), "/app", "/app");
}
END_TEST

START_TEST(operation_of_unknown_type_is_refused)
{
  static const int32_t types[] = {0, -1, 3, 4, 9, 14, 20, 21, 999};

  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    lk_op op = lk_op_delete("/x", -1);
    lk_writer out;

    op.type = types[i];
    lk__writer_init(&out, NULL, 0);
    lk__multi_encode(&out, &op, 1, "");
    ck_assert_int_eq(out.err, LK_ERR_BAD_ARGUMENT);
  }
}
END_TEST

START_TEST(opcode_of_no_operation_has_no_record)
{
  static const int32_t never[] = {0, 3, 6, 9, 14, 20, 22, 100, 999};
  lk_operation part;
  lk_writer out;

  for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
    ck_assert_ptr_null(
        lk__operation_record(never[i], LK_OPERATIONS_OF_REQUEST));
    ck_assert_ptr_null(lk__operation_record(never[i], LK_OPERATIONS_OF_REPLY));
    part.type = never[i];
    lk__writer_init(&out, NULL, 0);
    lk__operation_encode(&part, LK_OPERATIONS_OF_REPLY, &out);
    ck_assert_int_eq(out.err, LK_ERR_BAD_ARGUMENT);
    ck_assert_uint_eq(out.len, 0);
  }
  /* createTTL has the result of create2, and an error is the result of no
     request. */
  ck_assert_ptr_nonnull(
      lk__operation_record(LK_OPCODE_CREATE_TTL, LK_OPERATIONS_OF_REQUEST));
  ck_assert_ptr_null(
      lk__operation_record(LK_OPCODE_CREATE_TTL, LK_OPERATIONS_OF_REPLY));
  ck_assert_ptr_null(
      lk__operation_record(LK_OPCODE_ERROR, LK_OPERATIONS_OF_REQUEST));
  ck_assert_ptr_nonnull(
      lk__operation_record(LK_OPCODE_ERROR, LK_OPERATIONS_OF_REPLY));
}
END_TEST

START_TEST(operation_has_the_given_fields)
{
  lk_op op = lk_op_create("/c", lk_text("d"), lk_acl_read(), LK_EPHEMERAL);

  ck_assert_int_eq(op.type, LK_OP_CREATE);
  ck_assert_str_eq(op.path, "/c");
  ck_assert_mem_eq(op.data.at, "d", 1);
  ck_assert_ptr_eq(op.acl, lk_acl_read());
  ck_assert_int_eq(op.flags, LK_EPHEMERAL);
  op = lk_op_delete("/d", 4);
  ck_assert_int_eq(op.type, LK_OP_DELETE);
  ck_assert_str_eq(op.path, "/d");
  ck_assert_int_eq(op.version, 4);
  op = lk_op_set("/s", lk_text(NULL), 5);
  ck_assert_int_eq(op.type, LK_OP_SET);
  ck_assert_ptr_null(op.data.at);
  ck_assert_int_eq(op.version, 5);
  op = lk_op_check("/k", -1);
  ck_assert_int_eq(op.type, LK_OP_CHECK);
  ck_assert_str_eq(op.path, "/k");
  ck_assert_int_eq(op.version, -1);
}
END_TEST

/* ---- results ---------------------------------------------------------- */

START_TEST(results_are_decoded_by_their_types)
{
  ck_assert_int_eq(decode_captured(5, "multi-ok"), 0);
  ck_assert_int_eq(outcome, 0);
  ck_assert_int_eq(results[0].type, LK_OP_CREATE);
  ck_assert_str_eq(results[0].path, "/g/m1");
  ck_assert_ptr_null(results[0].stat);
  /* The server replies to a create2 with the result of a create. */
  ck_assert_int_eq(results[1].type, LK_OP_CREATE);
  ck_assert_str_eq(results[1].path, "/g/m2");
  ck_assert_int_eq(results[2].type, LK_OP_SET);
  ck_assert_ptr_null(results[2].path);
  ck_assert_int_eq(results[2].stat->mzxid, 31);
  ck_assert_int_eq(results[3].type, LK_OP_CHECK);
  ck_assert_int_eq(results[4].type, LK_OP_DELETE);
  ck_assert_ptr_null(results[4].path);
  ck_assert_ptr_null(results[4].stat);
  for (size_t i = 0; i < 5; i++)
    ck_assert_int_eq(results[i].err, 0);

  ck_assert_int_eq(decode_captured(1, "multi-container"), 0);
  ck_assert_int_eq(outcome, 0);
  ck_assert_int_eq(results[0].type, LK_OP_CREATE2);
  ck_assert_str_eq(results[0].path, "/g/mbox");
  ck_assert_int_eq(results[0].stat->czxid, 33);

  ck_assert_int_eq(decode_captured(0, "multi-empty"), 0);
  ck_assert_int_eq(outcome, 0);
  lk__arena_free(&arena);
}
END_TEST

START_TEST(result_of_a_multi_is_the_error_of_the_failed_operation)
{
  ck_assert_int_eq(decode_captured(3, "multi-fail"), 0);
  ck_assert_int_eq(outcome, LK_ERR_NODE_EXISTS);
  ck_assert_int_eq(results[0].err, 0);
  ck_assert_int_eq(results[1].err, LK_ERR_NODE_EXISTS);
  ck_assert_int_eq(results[2].err, LK_ERR_RUNTIME_INCONSISTENCY);
  for (size_t i = 0; i < 3; i++) {
    ck_assert_int_eq(results[i].type, -1);
    ck_assert_ptr_null(results[i].path);
    ck_assert_ptr_null(results[i].stat);
  }
  ck_assert_int_eq(decode_captured(1, "multi-check-fail"), 0);
  ck_assert_int_eq(outcome, LK_ERR_BAD_VERSION);
  lk__arena_free(&arena);
}
END_TEST

/* The bytes of results. Each has a header: its type, whether it is the end, and
   an error. HEAD is that of a success. The other three are errors, type -1, the
   latter two with a body, the error once more. */
#define HEAD(type) "\x00\x00\x00" type "\x00\x00\x00\x00\x00"
#define END        "\xff\xff\xff\xff\x01\xff\xff\xff\xff"
#define ERROR_0    "\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00"
#define NOT_TRIED  "\xff\xff\xff\xff\x00\xff\xff\xff\xfe\xff\xff\xff\xfe"

#define DECODE(asked, bytes) DECODE_IN_CHROOT("", asked, bytes)
#define DECODE_IN_CHROOT(chroot, asked, bytes) \
  decode_in_chroot(chroot, asked, bytes, sizeof(bytes) - 1)

/* In a failed transaction, operations before the failed one have the error 0,
   and operations behind it have RUNTIME_INCONSISTENCY. */
START_TEST(errors_without_a_failed_operation_are_no_success)
{
  failing_mem_init(&mem);
  ck_assert_int_eq(DECODE(2, ERROR_0 ERROR_0 END), 0);
  ck_assert_int_eq(outcome, LK_ERR_RUNTIME_INCONSISTENCY);
  ck_assert_int_eq(DECODE(2, ERROR_0 NOT_TRIED END), 0);
  ck_assert_int_eq(outcome, LK_ERR_RUNTIME_INCONSISTENCY);
  ck_assert_int_eq(DECODE(2, HEAD("\x02") ERROR_0 END), 0);
  ck_assert_int_eq(outcome, LK_ERR_RUNTIME_INCONSISTENCY);
  ck_assert_int_eq(DECODE(1, HEAD("\x02") END), 0);
  ck_assert_int_eq(outcome, 0);
  lk__arena_free(&arena);
}
END_TEST

START_TEST(too_few_and_too_many_results_are_refused)
{
  ck_assert_int_eq(decode_captured(4, "multi-ok"), LK_ERR_MARSHALLING);
  ck_assert_int_eq(decode_captured(6, "multi-ok"), LK_ERR_MARSHALLING);
  ck_assert_int_eq(decode_captured(0, "multi-ok"), LK_ERR_MARSHALLING);
  ck_assert_int_eq(decode_captured(1, "multi-empty"), LK_ERR_MARSHALLING);
  ck_assert_ptr_null(results);
  ck_assert_int_ne(outcome, 0);
  lk__arena_free(&arena);
}
END_TEST

START_TEST(impossible_result_is_refused)
{
  failing_mem_init(&mem);
  /* 3, 14 and 19 are no types of results; 8 is one of a multiRead. */
  ck_assert_int_eq(DECODE(1, HEAD("\x03") END), LK_ERR_MARSHALLING);
  ck_assert_int_eq(DECODE(1, HEAD("\x0e") END), LK_ERR_MARSHALLING);
  ck_assert_int_eq(DECODE(1, HEAD("\x13") END), LK_ERR_MARSHALLING);
  ck_assert_int_eq(DECODE(1, HEAD("\x08") "\0\0\0\0" END), LK_ERR_MARSHALLING);
  /* A path that is null, and one that contains a NUL. */
  ck_assert_int_eq(DECODE(1, HEAD("\x01") "\xff\xff\xff\xff" END),
                   LK_ERR_MARSHALLING);
  ck_assert_int_eq(DECODE(1, HEAD("\x01") "\0\0\0\3/\0a" END),
                   LK_ERR_MARSHALLING);
  ck_assert_int_eq(DECODE(1, HEAD("\x01") "\0\0\0\2/a" END), 0);
  /* A success with an error code; an error whose body has another error. The
     last has the same error, -101, in both places. */
  ck_assert_int_eq(DECODE(1, "\0\0\0\2\0\xff\xff\xff\x9b" END),
                   LK_ERR_MARSHALLING);
  ck_assert_int_eq(DECODE(1, "\xff\xff\xff\xff\0\xff\xff\xff\x9b"
                             "\0\0\0\0" END),
                   LK_ERR_MARSHALLING);
  ck_assert_int_eq(DECODE(1, "\xff\xff\xff\xff\0\xff\xff\xff\x9b"
                             "\xff\xff\xff\x9b" END),
                   0);
  ck_assert_int_eq(outcome, LK_ERR_NO_NODE);
  lk__arena_free(&arena);
}
END_TEST

START_TEST(paths_are_returned_without_the_chroot)
{
  failing_mem_init(&mem);
  ck_assert_int_eq(DECODE_IN_CHROOT("/g", 1, HEAD("\x01") "\0\0\0\5/g/m1" END),
                   0);
  ck_assert_str_eq(results[0].path, "/m1");
  ck_assert_int_eq(DECODE_IN_CHROOT("/g", 1, HEAD("\x01") "\0\0\0\2/g" END), 0);
  ck_assert_str_eq(results[0].path, "/");
  ck_assert_int_eq(DECODE_IN_CHROOT("/g", 1, HEAD("\x01") "\0\0\0\3/gm" END),
                   0);
  ck_assert_str_eq(results[0].path, "/gm");
  ck_assert_int_eq(DECODE_IN_CHROOT("/g", 1, HEAD("\x01") "\0\0\0\0" END), 0);
  ck_assert_str_eq(results[0].path, "");
  lk__arena_free(&arena);
}
END_TEST

static const struct {
  const char *name;
  size_t count;
} replies[] = {{"multi-ok", 5},
               {"multi-fail", 3},
               {"multi-container", 1},
               {"multi-empty", 0}};
enum { NREPLIES = sizeof replies / sizeof replies[0] };

START_TEST(every_truncation_is_refused)
{
  for (size_t i = 0; i < NREPLIES; i++) {
    lk_bytes body = captured_reply(replies[i].name);

    failing_mem_init(&mem);
    for (size_t len = 0; len < body.len; len++) {
      ck_assert_int_eq(decode_in_chroot("", replies[i].count, body.at, len),
                       LK_ERR_MARSHALLING);
      ck_assert_ptr_null(results);
    }
    lk__arena_free(&arena);
    ck_assert_uint_eq(mem.live, 0);
  }
}
END_TEST

START_TEST(every_allocation_may_fail)
{
  enum { PATH_LEN = 2000, RESULT_HEADER = sizeof END - 1 };
  /* The result of a create, with the length of its path, 2000. */
  const char create[] = HEAD("\x01") "\x00\x00\x07\xd0";
  char body[3000];
  char *at = body;
  size_t n = 0;
  int err;

  /* A path that fills a block of the arena, and a Stat behind it. */
  memcpy(at, create, sizeof create - 1);
  at += sizeof create - 1;
  memset(at, 'p', PATH_LEN);
  at += PATH_LEN;
  memcpy(at, HEAD("\x05"), RESULT_HEADER);
  at += RESULT_HEADER;
  memset(at, 1, LK_STAT_SIZE);
  at += LK_STAT_SIZE;
  memcpy(at, END, RESULT_HEADER);
  at += RESULT_HEADER;
  do {
    lk__arena_free(&arena);
    failing_mem_init(&mem);
    mem.fail_at = ++n;
    err = decode_in_chroot("", 2, body, (size_t)(at - body));
    ck_assert_int_eq(err, failing_mem_failed(&mem) ? LK_ERR_NO_MEMORY : 0);
    ck_assert_int_eq(outcome, err);
  } while (failing_mem_failed(&mem));
  ck_assert_uint_eq(n, 4); /* there are three allocations */
  ck_assert_uint_eq(strlen(results[0].path), PATH_LEN);
  ck_assert_int_eq(results[1].stat->version, 0x01010101);
  lk__arena_free(&arena);
  ck_assert_uint_eq(mem.live, 0);
}
END_TEST

SUITE("multi", operations_are_encoded_as_another_client_sent_them,
      a_chroot_stands_before_every_path, the_root_stands_for_the_chroot,
      operation_of_unknown_type_is_refused,
      opcode_of_no_operation_has_no_record, operation_has_the_given_fields,
      results_are_decoded_by_their_types,
      result_of_a_multi_is_the_error_of_the_failed_operation,
      errors_without_a_failed_operation_are_no_success,
      too_few_and_too_many_results_are_refused, impossible_result_is_refused,
      paths_are_returned_without_the_chroot, every_truncation_is_refused,
      every_allocation_may_fail)
