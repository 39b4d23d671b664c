/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/handshake_frames.h"
#include "proto/wire/records.h"
#include "support/suite.h"
#include "support/wire.h"
#include "vectors/vectors.h"

static lk_handshake h;

enum { FRAME_HEADER = 4 }; /* the length of the frame behind it */

/* Decode a connect response; `bytes` begin with the length of the frame. */
static lk_welcome decode_frame(const void *bytes, size_t len)
{
  unsigned char *frame =
      exactly((const char *)bytes + FRAME_HEADER, len - FRAME_HEADER);
  lk_welcome result =
      lk__handshake_decode(&h, lk_bytes_of(frame, len - FRAME_HEADER));

  free(frame);
  return result;
}

enum { NULL_PASSWORD = -1 };

/* The fields of a connect response. */
typedef struct response {
  int64_t id;
  int32_t timeout_ms;
  int password_len; /* or NULL_PASSWORD */
  int tail_len;     /* bytes behind the password, each with the value of
                       read_only; 1: the byte readOnly, 0: there is none */
  unsigned char read_only;
} response;

static bool accept_read_only; /* an option of the client */

/* The result of this response when the client has requested the session
   `requested`, or 0 for a new one. */
static lk_welcome decode_response(int64_t requested, response r)
{
  lk_buf b = wire_buf();
  size_t mark = wire_begin(&b);
  static const unsigned char password[32] = "0123456789abcdefghijklmnopqrstu";
  struct lk_connect_reply reply = {
      .timeout_ms = r.timeout_ms,
      .session_id = r.id,
      .password = r.password_len == NULL_PASSWORD
                      ? lk_bytes_of(NULL, 0)
                      : lk_bytes_of(password, (size_t)r.password_len)};

  wire_record(&b, &lk__connect_reply_record, &reply);
  for (int i = 0; i < r.tail_len; i++)
    ck_assert(lk__buf_append(&b, &r.read_only, 1));
  wire_end(&b, mark);
  h = (lk_handshake){.session = {.id = requested},
                     .read_only = accept_read_only};
  lk_welcome result = decode_frame(lk__buf_bytes(&b), lk__buf_len(&b));

  lk__buf_free(&b);
  return result;
}

START_TEST(session_of_a_connect_response_is_accepted)
{
  ck_assert_int_eq(decode_response(0, (response){-5, 4000, 16, 1, 0}),
                   LK_WELCOME_SESSION);
  ck_assert_int_eq(h.session.id, -5);
  ck_assert_int_eq(h.timeout_ms, 4000);
  ck_assert_mem_eq(h.session.password, "0123456789abcdef", 16);
  ck_assert_int_eq(decode_response(7, (response){7, 1, 16, 1, 0}),
                   LK_WELCOME_SESSION);
}
END_TEST

START_TEST(the_read_only_byte_may_be_missing_and_more_may_follow)
{
  ck_assert_int_eq(decode_response(7, (response){7, 1, 16, 0, 0}),
                   LK_WELCOME_SESSION);
  ck_assert_int_eq(decode_response(7, (response){7, 1, 16, 9, 0}),
                   LK_WELCOME_SESSION);
}
END_TEST

START_TEST(session_of_a_read_only_server_is_refused)
{
  ck_assert_int_eq(decode_response(0, (response){7, 1, 16, 1, 1}),
                   LK_WELCOME_READ_ONLY);
  ck_assert_int_eq(decode_response(7, (response){7, 1, 16, 1, 2}),
                   LK_WELCOME_READ_ONLY);
}
END_TEST

START_TEST(accepted_session_of_a_read_only_server_is_marked)
{
  accept_read_only = true;
  ck_assert_int_eq(decode_response(0, (response){7, 1, 16, 1, 1}),
                   LK_WELCOME_SESSION);
  ck_assert_int_eq(h.session.id, 7);
  ck_assert(h.read_only);
  ck_assert_int_eq(decode_response(0, (response){7, 1, 16, 1, 0}),
                   LK_WELCOME_SESSION);
  ck_assert(!h.read_only);
  ck_assert_int_eq(decode_response(0, (response){7, 1, 16, 0, 0}),
                   LK_WELCOME_SESSION);
  ck_assert(!h.read_only);
  ck_assert_int_eq(decode_response(0, (response){0, 0, 16, 1, 1}),
                   LK_WELCOME_EXPIRED);
  accept_read_only = false;
}
END_TEST

START_TEST(another_session_than_the_requested_one_means_expired)
{
  ck_assert_int_eq(decode_response(7, (response){8, 1, 16, 1, 0}),
                   LK_WELCOME_EXPIRED);
}
END_TEST

START_TEST(no_session_or_no_time_means_expired)
{
  ck_assert_int_eq(decode_response(7, (response){0, 0, 16, 1, 0}),
                   LK_WELCOME_EXPIRED);
  ck_assert_int_eq(decode_response(7, (response){0, 4000, 16, 1, 0}),
                   LK_WELCOME_EXPIRED);
  ck_assert_int_eq(decode_response(7, (response){7, 0, 16, 1, 0}),
                   LK_WELCOME_EXPIRED);
  ck_assert_int_eq(decode_response(7, (response){7, -1, 16, 1, 0}),
                   LK_WELCOME_EXPIRED);
  ck_assert_int_eq(decode_response(0, (response){0, 0, 16, 0, 0}),
                   LK_WELCOME_EXPIRED);
}
END_TEST

START_TEST(password_of_a_length_other_than_16_is_refused)
{
  ck_assert_int_eq(decode_response(0, (response){7, 1, 15, 1, 0}),
                   LK_WELCOME_BAD);
  ck_assert_int_eq(decode_response(0, (response){7, 1, 17, 1, 0}),
                   LK_WELCOME_BAD);
  ck_assert_int_eq(decode_response(0, (response){7, 1, NULL_PASSWORD, 32, 0}),
                   LK_WELCOME_BAD);
  ck_assert_int_eq(decode_response(0, (response){7, 1, 0, 32, 0}),
                   LK_WELCOME_BAD);
}
END_TEST

/* The result of a header of a reply in place of the connect response. */
static lk_welcome decode_reply_header(int32_t err)
{
  lk_buf b = wire_buf();

  wire_reply(&b, 0, 0x1234, err);
  lk_welcome result = decode_frame(lk__buf_bytes(&b), lk__buf_len(&b));

  lk__buf_free(&b);
  return result;
}

START_TEST(reply_header_without_a_body_is_no_connect_response)
{
  ck_assert_int_eq(decode_reply_header(LK_ERR_NOT_READ_ONLY),
                   LK_WELCOME_READ_ONLY);
  ck_assert_int_eq(decode_reply_header(-118), LK_WELCOME_BAD);
  ck_assert_int_eq(decode_reply_header(0), LK_WELCOME_BAD);
  ck_assert_int_eq(decode_reply_header(-1), LK_WELCOME_BAD);
}
END_TEST

START_TEST(truncated_connect_response_is_refused)
{
  lk_buf b = wire_buf();

  /* The version, the timeout, the session, the password. The byte readOnly may
     be missing. */
  const size_t needed = FRAME_HEADER + 4 + 4 + 8 + 4 + 16;

  wire_welcome(&b, 7, 4000);
  for (size_t len = FRAME_HEADER; len < needed; len++) {
    h = (lk_handshake){.session = {.id = 0}};
    ck_assert_int_eq(decode_frame(lk__buf_bytes(&b), len), LK_WELCOME_BAD);
    ck_assert_int_eq(h.session.id, 0);
  }
  h = (lk_handshake){.session = {.id = 0}};
  ck_assert_int_eq(decode_frame(lk__buf_bytes(&b), needed), LK_WELCOME_SESSION);
  lk__buf_free(&b);
}
END_TEST

/* Encode a captured connect request again from its fields, and compare. The
   request must have the form that the library sends. */
static void encode_again(const vector *v)
{
  struct lk_connect_request r;
  unsigned char bytes[LK_HANDSHAKE_LEN];
  lk_reader in;

  lk__reader_init(&in, v->bytes + 4, v->len - 4);
  ck_assert_int_eq(
      lk__record_decode(&lk__connect_request_record, &r, &in, NULL), 0);
  lk_handshake again = {.last_zxid = r.last_zxid_seen,
                        .timeout_ms = r.timeout_ms,
                        .session = {.id = r.session_id},
                        .read_only = v->bytes[v->len - 1] != 0};

  memcpy(again.session.password, r.password.at, 16);
  lk__handshake_encode(&again, bytes);
  ck_assert_mem_eq(bytes, v->bytes, sizeof bytes);
}

START_TEST(connect_requests_are_equal_to_captured_ones)
{
  vectors all = vectors_load(NULL);
  size_t count = 0;

  for (size_t i = 0; i < all.count; i++) {
    const vector *v = &all.frames[i];

    if (v->from_server || strcmp(v->kind, "connect") != 0 ||
        v->len != LK_HANDSHAKE_LEN)
      continue;
    encode_again(v);
    count++;
  }
  vectors_free(&all);
  ck_assert_uint_ge(count, 4); /* in two of them readOnly is true */
}
END_TEST

/* A server says that the session has expired by a timeout of 0. */
static lk_welcome expected_of(const vector *v)
{
  enum { TIMEOUT_AT = FRAME_HEADER + 4 }; /* behind the version */

  return memcmp(v->bytes + TIMEOUT_AT, "\0\0\0\0", 4) == 0 ? LK_WELCOME_EXPIRED
                                                           : LK_WELCOME_SESSION;
}

START_TEST(captured_connect_responses_are_decoded)
{
  vectors all = vectors_load(NULL);
  size_t seen[LK_WELCOME_BAD + 1] = {0};

  for (size_t i = 0; i < all.count; i++) {
    const vector *v = &all.frames[i];

    if (!v->from_server || (strcmp(v->kind, "connect") != 0 &&
                            strcmp(v->kind, "error-header") != 0))
      continue;
    h = (lk_handshake){.session = {.id = 0}};
    lk_welcome result = decode_frame(v->bytes, v->len);

    /* Read-only servers send both a response and a header with an error. */
    if (result != LK_WELCOME_READ_ONLY)
      ck_assert_msg(result == expected_of(v), "%s", v->name);
    seen[result]++;
  }
  vectors_free(&all);
  ck_assert_uint_gt(seen[LK_WELCOME_SESSION], 2);
  ck_assert_uint_gt(seen[LK_WELCOME_EXPIRED], 0);
  ck_assert_uint_gt(seen[LK_WELCOME_READ_ONLY], 0);
  ck_assert_uint_eq(seen[LK_WELCOME_BAD], 0);
}
END_TEST

SUITE("handshake", session_of_a_connect_response_is_accepted,
      the_read_only_byte_may_be_missing_and_more_may_follow,
      session_of_a_read_only_server_is_refused,
      accepted_session_of_a_read_only_server_is_marked,
      another_session_than_the_requested_one_means_expired,
      no_session_or_no_time_means_expired,
      password_of_a_length_other_than_16_is_refused,
      reply_header_without_a_body_is_no_connect_response,
      truncated_connect_response_is_refused,
      connect_requests_are_equal_to_captured_ones,
      captured_connect_responses_are_decoded)
