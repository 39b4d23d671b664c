/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/frame.h"
#include "support/failing_mem.h"
#include "support/suite.h"
#include "support/wire.h"
#include "vectors/vectors.h"

static failing_mem mem;
static lk_frames frames;

static void begin(size_t limit)
{
  failing_mem_init(&mem);
  frames = (lk_frames){.partial = {.mem = &mem.mem}, .limit = limit};
}

static void end(void)
{
  lk__buf_free(&frames.partial);
  ck_assert_uint_eq(mem.live, 0);
}

enum { FRAME_HEADER = 4 }; /* the length of the frame behind it */

/* Three frames: one of five bytes, an empty one, one of three hundred. */
static lk_buf stream_of_three_frames(void)
{
  static const size_t lens[] = {5, 0, 300};
  lk_buf b = wire_buf();

  for (size_t i = 0; i < 3; i++) {
    size_t mark = wire_begin(&b);

    for (size_t k = 0; k < lens[i]; k++) {
      unsigned char byte = (unsigned char)(k * 7 + i);

      ck_assert(lk__buf_append(&b, &byte, 1));
    }
    wire_end(&b, mark);
  }
  return b;
}

/* Feed a piece in a block of exactly its size, and append the complete frames
   to `out`. */
static void feed(const unsigned char *at, size_t len, lk_buf *out)
{
  unsigned char *copy = exactly(at, len);
  lk_bytes bytes = {copy, len}, frame;

  for (;;) {
    lk_frame_result result = lk__frame_next(&frames, &bytes, &frame);

    if (result == LK_FRAME_NONE)
      break;
    ck_assert_int_eq(result, LK_FRAME_WHOLE);
    size_t mark = wire_begin(out);

    if (frame.len > 0)
      ck_assert(lk__buf_append(out, frame.at, frame.len));
    wire_end(out, mark);
  }
  ck_assert_uint_eq(bytes.len, 0);
  free(copy);
}

/* Feed the stream in three pieces: up to `a`, up to `b`, and the rest. */
static void feed_in_pieces(const lk_buf *in, size_t a, size_t b)
{
  const unsigned char *at = lk__buf_bytes(in);
  size_t len = lk__buf_len(in);
  lk_buf out = wire_buf();

  begin(1000);
  feed(at, a, &out);
  feed(at + a, b - a, &out);
  feed(at + b, len - b, &out);
  ck_assert_uint_eq(lk__buf_len(&out), len);
  ck_assert_mem_eq(lk__buf_bytes(&out), at, len);
  lk__buf_free(&out);
  end();
}

START_TEST(frames_are_complete_however_they_are_split)
{
  lk_buf in = stream_of_three_frames();
  size_t len = lk__buf_len(&in);

  for (size_t a = 0; a <= len; a++) {
    /* To save time, only each tenth `a` is tried with all `b`. */
    const size_t step = a % 10 == 0 ? 1 : 17;

    for (size_t b = a; b <= len; b += step)
      feed_in_pieces(&in, a, b);
  }
  lk__buf_free(&in);
}
END_TEST

START_TEST(frames_are_complete_byte_by_byte)
{
  lk_buf in = stream_of_three_frames(), out = wire_buf();
  size_t len = lk__buf_len(&in);

  begin(1000);
  for (size_t i = 0; i < len; i++)
    feed(lk__buf_bytes(&in) + i, 1, &out);
  ck_assert_uint_eq(lk__buf_len(&out), len);
  ck_assert_mem_eq(lk__buf_bytes(&out), lk__buf_bytes(&in), len);
  lk__buf_free(&in);
  lk__buf_free(&out);
  end();
}
END_TEST

START_TEST(complete_frame_is_not_copied)
{
  const size_t first_at = FRAME_HEADER;
  const size_t third_at = FRAME_HEADER + 5 + FRAME_HEADER + 0 + FRAME_HEADER;
  lk_buf in = stream_of_three_frames();
  lk_bytes bytes = {lk__buf_bytes(&in), lk__buf_len(&in)}, frame;

  begin(1000);
  ck_assert_int_eq(lk__frame_next(&frames, &bytes, &frame), LK_FRAME_WHOLE);
  ck_assert_ptr_eq(frame.at, lk__buf_bytes(&in) + first_at);
  ck_assert_uint_eq(frame.len, 5);
  ck_assert_int_eq(lk__frame_next(&frames, &bytes, &frame), LK_FRAME_WHOLE);
  ck_assert_int_eq(lk__frame_next(&frames, &bytes, &frame), LK_FRAME_WHOLE);
  ck_assert_ptr_eq(frame.at, lk__buf_bytes(&in) + third_at);
  ck_assert_int_eq(lk__frame_next(&frames, &bytes, &frame), LK_FRAME_NONE);
  ck_assert_uint_eq(mem.count, 0);
  lk__buf_free(&in);
  end();
}
END_TEST

enum { START_SIZE = FRAME_HEADER + 1 };

/* The start of a frame: the length `len` and one byte. */
static void write_start(uint32_t len, unsigned char start[START_SIZE])
{
  for (int i = 0; i < FRAME_HEADER; i++)
    start[i] = (unsigned char)(len >> (24 - 8 * i));
  start[FRAME_HEADER] = 'x';
}

static lk_frame_result feed_start(uint32_t len)
{
  unsigned char start[START_SIZE];
  lk_bytes bytes = {start, sizeof start}, frame;

  write_start(len, start);
  return lk__frame_next(&frames, &bytes, &frame);
}

static lk_frame_result feed_start_byte_by_byte(uint32_t len)
{
  unsigned char start[START_SIZE];
  lk_frame_result result = LK_FRAME_NONE;

  write_start(len, start);
  for (size_t i = 0; i < sizeof start && result == LK_FRAME_NONE; i++) {
    lk_bytes bytes = {start + i, 1}, frame;

    result = lk__frame_next(&frames, &bytes, &frame);
  }
  return result;
}

START_TEST(hostile_lengths_are_refused_and_take_no_memory)
{
  /* Above the limit of 1000. 0x72756f6b is text. */
  static const uint32_t hostile[] = {1001,       0x7fffffff, 0x80000000,
                                     0xffffffff, 0x72756f6b, 0x10000000};

  for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
    begin(1000);
    lk_frame_result refusal =
        hostile[i] > INT32_MAX ? LK_FRAME_BAD : LK_FRAME_TOO_BIG;

    ck_assert_int_eq(feed_start(hostile[i]), refusal);
    ck_assert_uint_eq(mem.count, 0);
    ck_assert_int_eq(feed_start_byte_by_byte(hostile[i]), refusal);
    ck_assert_uint_le(mem.bytes, 256);
    end();
  }
}
END_TEST

START_TEST(memory_grows_with_bytes_received_and_not_with_lengths)
{
  begin(0x7fffffff);
  ck_assert_int_eq(feed_start(0x7fffffff), LK_FRAME_NONE);
  /* These bytes are the next ones of the same frame. */
  ck_assert_int_eq(feed_start(0x7fffffff), LK_FRAME_NONE);
  ck_assert_uint_le(mem.bytes, 512);
  lk__frames_reset(&frames);
  end();
}
END_TEST

enum { LONG_FRAME = 5000 };

/* Receive a piece of a stream of `len` bytes: as much as the room that is
   offered for it can take, or else up to 100 bytes in a block of its own. `out`
   is the long frame when it is complete. Returns the number of bytes received.
 */
static size_t receive_piece(const unsigned char *at, size_t len, lk_bytes *out)
{
  size_t size = 0;
  unsigned char *room = lk__frame_room(&frames, 1, &size);
  unsigned char *own_block = NULL;
  lk_bytes bytes;

  if (room == NULL) {
    size = len < 100 ? len : 100;
    own_block = room = exactly(at, size);
  }
  bytes = lk_bytes_of(room, size < len ? size : len);
  memcpy(room, at, bytes.len);
  len = bytes.len;
  *out = lk_bytes_of(NULL, 0);
  while (lk__frame_next(&frames, &bytes, out) == LK_FRAME_WHOLE &&
         out->len < LONG_FRAME)
    ;
  free(own_block);
  return len;
}

START_TEST(a_long_frame_is_received_in_place)
{
  lk_buf in = stream_of_three_frames();
  size_t mark = wire_begin(&in);
  lk_bytes frame = {NULL, 0};
  size_t done = 0;

  for (size_t k = 0; k < LONG_FRAME; k++)
    ck_assert(lk__buf_append(&in, &(unsigned char){(unsigned char)k}, 1));
  wire_end(&in, mark);
  begin(10000);
  while (done < lk__buf_len(&in)) {
    done += receive_piece(lk__buf_bytes(&in) + done, lk__buf_len(&in) - done,
                          &frame);
    ck_assert_uint_le(mem.bytes, 512 + 4 * done);
  }
  ck_assert_uint_eq(frame.len, LONG_FRAME);
  ck_assert_mem_eq(frame.at, lk__buf_bytes(&in) + mark + FRAME_HEADER,
                   LONG_FRAME);
  ck_assert_uint_le(mem.count, 6); /* the buffer grows from 256 to 8192 bytes */
  lk__buf_free(&in);
  end();
}
END_TEST

START_TEST(frame_room_is_bounded_by_missing_and_received_bytes)
{
  size_t size;

  begin(0x7fffffff);
  ck_assert_ptr_null(lk__frame_room(&frames, 1, &size));
  ck_assert_int_eq(feed_start(10), LK_FRAME_NONE); /* 5 bytes of 14 */
  ck_assert_ptr_null(lk__frame_room(&frames, 6, &size));
  ck_assert_ptr_nonnull(lk__frame_room(&frames, 5, &size));
  ck_assert_uint_eq(size, 5); /* as many as the received bytes */

  lk_bytes bytes = {"567890", 6}, frame;

  ck_assert_int_eq(lk__frame_next(&frames, &bytes, &frame), LK_FRAME_NONE);
  ck_assert_ptr_nonnull(lk__frame_room(&frames, 1, &size));
  ck_assert_uint_eq(size, 3); /* as many as the missing bytes */
  bytes = lk_bytes_of("cde", 3);
  ck_assert_int_eq(lk__frame_next(&frames, &bytes, &frame), LK_FRAME_WHOLE);
  ck_assert_ptr_null(lk__frame_room(&frames, 1, &size));
  ck_assert_mem_eq(frame.at, "x567890cde", 10);
  lk__frames_reset(&frames);
  end();
}
END_TEST

START_TEST(frame_room_without_memory_is_refused)
{
  unsigned char some[200] = {0, 0, 1, 0}; /* of a frame of 256 bytes */
  lk_bytes bytes = {some, sizeof some}, frame;
  size_t size;

  begin(1000);
  ck_assert_int_eq(lk__frame_next(&frames, &bytes, &frame), LK_FRAME_NONE);
  mem.fail_at = mem.count + 1;
  ck_assert_ptr_null(lk__frame_room(&frames, 60, &size));
  ck_assert(failing_mem_failed(&mem));
  bytes = lk_bytes_of(some, 50); /* the buffer still has room for 50 bytes */
  ck_assert_int_eq(lk__frame_next(&frames, &bytes, &frame), LK_FRAME_NONE);
  ck_assert_ptr_nonnull(lk__frame_room(&frames, 10, &size));
  ck_assert_uint_eq(size, 10);
  lk__frames_reset(&frames);
  end();
}
END_TEST

START_TEST(frame_of_the_limit_is_accepted)
{
  begin(1000);
  ck_assert_int_eq(feed_start(1000), LK_FRAME_NONE);
  lk__frames_reset(&frames);
  ck_assert_int_eq(feed_start_byte_by_byte(1000), LK_FRAME_NONE);
  lk__frames_reset(&frames);
  ck_assert_int_eq(feed_start_byte_by_byte(1), LK_FRAME_WHOLE);
  end();
}
END_TEST

START_TEST(reset_discards_received_bytes)
{
  lk_buf out = wire_buf();

  begin(1000);
  feed((const unsigned char *)"\0\0\0\5abc", 7, &out);
  lk__frames_reset(&frames);
  feed((const unsigned char *)"\0\0\0\2de", 6, &out);
  ck_assert_uint_eq(lk__buf_len(&out), 6);
  ck_assert_mem_eq(lk__buf_bytes(&out), "\0\0\0\2de", 6);
  lk__buf_free(&out);
  end();
}
END_TEST

/* Feed a frame of 1,600,000 bytes in pieces. */
static void feed_large_frame(void)
{
  size_t len = 1600000;
  unsigned char *big = calloc(1, len + FRAME_HEADER);
  lk_buf out = wire_buf();

  big[1] = (unsigned char)(len >> 16);
  big[2] = (unsigned char)(len >> 8 & 0xff);
  big[3] = (unsigned char)(len & 0xff);
  for (size_t at = 0; at < len + FRAME_HEADER; at += 65536)
    feed(big + at,
         len + FRAME_HEADER - at < 65536 ? len + FRAME_HEADER - at : 65536,
         &out);
  ck_assert_uint_eq(lk__buf_len(&out), len + FRAME_HEADER);
  lk__buf_free(&out);
  free(big);
}

static void feed_empty_frame(void)
{
  lk_buf out = wire_buf();

  feed((const unsigned char[FRAME_HEADER]){0}, FRAME_HEADER, &out);
  lk__buf_free(&out);
}

/* A frame of one byte, in two pieces: it needs memory, but little. */
static void feed_split_frame(void)
{
  static const unsigned char frame[FRAME_HEADER + 1] = {0, 0, 0, 1, 'x'};
  lk_buf out = wire_buf();

  feed(frame, FRAME_HEADER, &out);
  feed(frame + FRAME_HEADER, 1, &out);
  feed(frame, 0, &out);
  lk__buf_free(&out);
}

START_TEST(memory_of_a_large_frame_serves_the_next_until_it_is_trimmed)
{
  begin(16 << 20);
  feed_large_frame();
  size_t count = mem.count;

  ck_assert_uint_gt(count, 0);
  ck_assert(frames.large_was_returned);
  frames.large_was_returned = false;
  for (int small = 0; small < 100; small++) {
    feed_empty_frame();
    feed_split_frame();
  }
  ck_assert(!frames.large_was_returned);
  feed_large_frame();
  ck_assert_uint_eq(mem.count, count);
  lk__frames_trim(&frames);
  ck_assert_uint_le(frames.partial.cap, LK_FRAMES_KEPT);
  end();
}
END_TEST

START_TEST(trim_keeps_a_frame_that_is_being_received)
{
  const size_t len = 100000;
  unsigned char *big = calloc(1, len + FRAME_HEADER);
  lk_buf out = wire_buf();

  begin(16 << 20);
  big[1] = (unsigned char)(len >> 16);
  big[2] = (unsigned char)(len >> 8 & 0xff);
  big[3] = (unsigned char)(len & 0xff);
  feed(big, len, &out);
  lk__frames_trim(&frames);
  feed(big + len, FRAME_HEADER, &out);
  ck_assert_uint_eq(lk__buf_len(&out), len + FRAME_HEADER);
  lk__buf_free(&out);
  free(big);
  end();
}
END_TEST

START_TEST(each_failing_allocation_is_reported)
{
  lk_buf in = stream_of_three_frames();
  const unsigned char *at = lk__buf_bytes(&in);
  size_t len = lk__buf_len(&in);

  for (size_t n = 1;; n++) {
    lk_frame_result result = LK_FRAME_NONE;

    begin(1000);
    mem.fail_at = n;
    for (size_t i = 0; i < len && result != LK_FRAME_NO_MEMORY; i++) {
      lk_bytes bytes = {at + i, 1}, frame;

      result = lk__frame_next(&frames, &bytes, &frame);
      ck_assert_int_ne(result, LK_FRAME_BAD);
    }
    ck_assert(failing_mem_failed(&mem) == (result == LK_FRAME_NO_MEMORY));
    bool failed = failing_mem_failed(&mem);

    end();
    if (!failed) {
      ck_assert_uint_gt(n, 1); /* at least one allocation has failed */
      break;
    }
  }
  lk__buf_free(&in);
}
END_TEST

SUITE("frame", frames_are_complete_however_they_are_split,
      frames_are_complete_byte_by_byte, complete_frame_is_not_copied,
      hostile_lengths_are_refused_and_take_no_memory,
      memory_grows_with_bytes_received_and_not_with_lengths,
      a_long_frame_is_received_in_place,
      frame_room_is_bounded_by_missing_and_received_bytes,
      frame_room_without_memory_is_refused, frame_of_the_limit_is_accepted,
      reset_discards_received_bytes,
      memory_of_a_large_frame_serves_the_next_until_it_is_trimmed,
      trim_keeps_a_frame_that_is_being_received,
      each_failing_allocation_is_reported)
