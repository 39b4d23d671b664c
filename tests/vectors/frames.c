/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/failing_mem.h"
#include "support/suite.h"
#include "vectors/relay.h"

#include <stdio.h>

enum {
  LENGTH_FIELD = 4,
  REPLY_HEADER = 16,
  REQUEST_HEADER = 8,
  FRAMES = 266 /* in vectors.txt */
};

static failing_mem mem;

/* Called for every frame. `bytes`: without the length field. */
typedef void (*frame_fn)(const vector *v, const unsigned char *bytes,
                         size_t len);

static void for_each_frame(frame_fn check_frame)
{
  vectors all = vectors_load(NULL);
  size_t count = 0;

  for (size_t i = 0; i < all.count; i++) {
    const vector *v = &all.frames[i];

    if (!relay_is_frame(v))
      continue;
    failing_mem_init(&mem);
    check_frame(v, v->bytes + LENGTH_FIELD, v->len - LENGTH_FIELD);
    count++;
  }
  ck_assert_uint_eq(count, FRAMES); /* none is left out */
  vectors_free(&all);
}

/* Relay the bytes and discard the result. Returns the error. */
static int relay_and_discard(const vector *v, const unsigned char *bytes,
                             size_t len)
{
  relay r = {.frame = v, .mem = &mem.mem};
  int err = relay_run(&r, bytes, len);

  relay_clear(&r);
  ck_assert_uint_eq(mem.live, 0);
  return err;
}

/* A reply to a SASL request may have a body behind an error. The decoder
   ignores the body, so fewer bytes are encoded than were captured. */
static bool body_may_be_ignored(const vector *v)
{
  return strcmp(v->kind, "sasl") == 0;
}

static void check_round_trip(const vector *v, const unsigned char *bytes,
                             size_t len)
{
  relay r = {.frame = v, .mem = &mem.mem};

  /* The length field; its upper half is 0 in all frames. */
  ck_assert_uint_eq((size_t)v->bytes[2] << 8 | v->bytes[3], len);
  ck_assert_msg(relay_run(&r, bytes, len) == 0, "%s", v->name);
  ck_assert_msg(r.out.len == len ||
                    (body_may_be_ignored(v) && r.out.len == REPLY_HEADER),
                "%s: %zu bytes of %zu", v->name, r.out.len, len);
  ck_assert_msg(memcmp(r.encoded, bytes, r.out.len) == 0, "%s", v->name);
  relay_clear(&r);
}

START_TEST(every_frame_is_decoded_and_encoded_to_the_same_bytes)
{
  for_each_frame(check_round_trip);
}
END_TEST

static void check_every_cut(const vector *v, const unsigned char *bytes,
                            size_t len)
{
  relay r = {.frame = v, .mem = &mem.mem};

  ck_assert_int_eq(relay_run(&r, bytes, len), 0);
  relay_clear(&r);
  ck_assert_uint_ge(r.needed, REQUEST_HEADER); /* at least a header */
  for (size_t cut = 0; cut < r.needed; cut++) {
    unsigned char *block = exactly(bytes, cut);

    ck_assert_msg(relay_and_discard(v, block, cut) == LK_ERR_MARSHALLING,
                  "%s: %zu of %zu", v->name, cut, len);
    free(block);
  }
}

START_TEST(every_cut_of_a_frame_is_refused)
{
  for_each_frame(check_every_cut);
}
END_TEST

static size_t failures; /* of allocations, for all frames */

static void check_every_allocation(const vector *v, const unsigned char *bytes,
                                   size_t len)
{
  size_t n = 1;
  int err;

  do {
    failing_mem_init(&mem);
    mem.fail_at = n++;
    err = relay_and_discard(v, bytes, len);
    ck_assert_int_eq(err, failing_mem_failed(&mem) ? LK_ERR_NO_MEMORY : 0);
    if (failing_mem_failed(&mem))
      failures++;
  } while (failing_mem_failed(&mem));
}

START_TEST(every_allocation_for_a_frame_may_fail)
{
  for_each_frame(check_every_allocation);
  ck_assert_uint_gt(failures, 30);
}
END_TEST

/* Puts each of these lengths at each place behind the header. The header stays,
   since it tells which record follows. */
static void check_every_length(const vector *v, const unsigned char *bytes,
                               size_t len)
{
  static const unsigned char lengths[][4] = {
      {0x7f, 0xff, 0xff, 0xff}, {0x00, 0x7f, 0xff, 0xff},
      {0xff, 0xff, 0xff, 0xfe}, {0x80, 0x00, 0x00, 0x00},
      {0x40, 0x00, 0x00, 0x01}, {0xff, 0xff, 0xff, 0xff},
      {0x00, 0x00, 0x00, 0x00}};
  size_t header = v->from_server ? REPLY_HEADER : REQUEST_HEADER;

  for (size_t at = header; at + 4 <= len; at++) {
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
      unsigned char *block = exactly(bytes, len);

      memcpy(block + at, lengths[k], 4);
      failing_mem_init(&mem);
      int err = relay_and_discard(v, block, len);

      ck_assert(err == 0 || err == LK_ERR_MARSHALLING);
      /* A decoded element takes up to ten times its bytes, and an arena up to
         twice what was taken from it. */
      ck_assert_uint_le(mem.bytes, 2048 + 20 * len);
      free(block);
    }
  }
}

START_TEST(hostile_length_takes_memory_in_proportion_to_its_frame)
{
  for_each_frame(check_every_length);
}
END_TEST

START_TEST(decoded_frames_match_the_recorded_trace)
{
  const char *srcdir = getenv("srcdir");
  vectors all = vectors_load(NULL);
  char path[4096], line[4096];
  FILE *in;

  snprintf(path, sizeof path, "%s/tests/vectors/vectors.trace",
           srcdir == NULL ? "." : srcdir);
  in = fopen(path, "r");
  ck_assert_ptr_nonnull(in);
  for (size_t i = 0; i < all.count; i++) {
    lk_buf out = {.mem = &lk__mem_libc};

    relay_line(&all.frames[i], &out);
    ck_assert(lk__buf_append(&out, "", 1));
    ck_assert_ptr_nonnull(fgets(line, sizeof line, in));
    ck_assert_str_eq((const char *)lk__buf_bytes(&out), line);
    lk__buf_free(&out);
  }
  ck_assert_ptr_null(fgets(line, sizeof line, in));
  fclose(in);
  vectors_free(&all);
}
END_TEST

SUITE("frames", every_frame_is_decoded_and_encoded_to_the_same_bytes,
      every_cut_of_a_frame_is_refused, every_allocation_for_a_frame_may_fail,
      hostile_length_takes_memory_in_proportion_to_its_frame,
      decoded_frames_match_the_recorded_trace)
