/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/set_watches.h"
#include "proto/wire/opcode.h"
#include "support/failing_mem.h"
#include "support/suite.h"
#include "vectors/vectors.h"

#include <stdio.h>

static failing_mem mem;
static lk_watches ws;
static lk_buf out;

static void on_event(lk_client *c, lk_watch *w, const lk_event *event,
                     void *arg)
{
  (void)c;
  (void)w;
  (void)event;
  (void)arg;
}

static void begin(void)
{
  failing_mem_init(&mem);
  ck_assert(lk__watches_init(&ws, &mem.mem));
  out = (lk_buf){.mem = &mem.mem};
}

enum { DEFAULT_SEND_LIMIT = 0xfffff };

static void end(void)
{
  lk_link all;

  lk__list_init(&all);
  lk__watches_take_all(&ws, &all);
  while (!lk__list_empty(&all))
    lk__watch_drop(&ws, LK_OWNER(all.next, lk_watch, event_link));
  lk__watches_free(&ws);
  lk__buf_free(&out);
  ck_assert_uint_eq(mem.live, 0);
}

static void watch(lk_bytes path, lk_watch_kind kind)
{
  lk_call call = {.size = sizeof call, .on_event = on_event};
  lk_watch *w = lk__watch_new(&ws, path, kind, &call);

  ck_assert_ptr_nonnull(w);
  lk__watch_stand(&ws, w, kind);
}

/* Encode setWatches for all registered watches, which may have missed changes
   after `zxid`. */
static int encode(int64_t zxid, size_t send_limit)
{
  lk__watches_mark_missing(&ws, zxid);
  return lk__set_watches_encode(&ws, send_limit, &out);
}

/* ---- the encoded requests ------------------------------------------------ */

enum { FRAME_HEADER = 4 }; /* the length of the frame behind it */

/* A decoded setWatches, one of those into which the watches are split. */
typedef struct chunk {
  struct lk_set_watches_request r;
  size_t frame_len;  /* without FRAME_HEADER */
  size_t path_bytes; /* of all paths with their lengths */
  size_t paths;      /* number of paths in all lists */
} chunk;

static lk_arena arena = {.mem = &lk__mem_libc};

static void count_paths(chunk *c, const lk_vec *v)
{
  const lk_bytes *paths = v->items;

  c->paths += v->count;
  for (size_t i = 0; i < v->count; i++)
    c->path_bytes += 4 + paths[i].len;
}

/* Decode the chunk at `*at` in the output, and set `*at` behind it. */
static chunk read_chunk(size_t *at)
{
  struct lk_request_header h;
  chunk c = {.frame_len = 0};
  lk_reader in;

  lk__reader_init(&in, lk__buf_bytes(&out) + *at, lk__buf_len(&out) - *at);
  c.frame_len = (size_t)lk__reader_int(&in);
  lk__reader_init(&in, lk__buf_bytes(&out) + *at + FRAME_HEADER, c.frame_len);
  lk__record_decode(&lk__request_header_record, &h, &in, &arena);
  lk__record_decode(&lk__set_watches_request_record, &c.r, &in, &arena);
  ck_assert_int_eq(in.err, 0);
  ck_assert_uint_eq(lk__reader_left(&in), 0);
  ck_assert_int_eq(h.xid, LK_XID_SET_WATCHES);
  ck_assert_int_eq(h.type, LK_OPCODE_SET_WATCHES);
  count_paths(&c, &c.r.data);
  count_paths(&c, &c.r.exist);
  count_paths(&c, &c.r.child);
  *at += FRAME_HEADER + c.frame_len;
  return c;
}

static bool is_set_watches(const vector *v)
{
  /* The xid -8 of setWatches, behind the length. */
  return !v->from_server && strcmp(v->kind, "setWatches") == 0 &&
         memcmp(v->bytes + FRAME_HEADER, "\xff\xff\xff\xf8", 4) == 0;
}

START_TEST(request_is_equal_to_a_captured_one)
{
  enum { BODY_AT = FRAME_HEADER + 8 }; /* behind the xid and the opcode */
  vectors all = vectors_load(NULL);
  size_t count = 0;

  for (size_t i = 0; i < all.count; i++) {
    const vector *v = &all.frames[i];
    struct lk_set_watches_request r;
    lk_reader in;

    if (!is_set_watches(v))
      continue;
    lk__reader_init(&in, v->bytes + BODY_AT, v->len - BODY_AT);
    ck_assert_int_eq(
        lk__record_decode(&lk__set_watches_request_record, &r, &in, &arena), 0);
    begin();
    const lk_vec *lists[] = {&r.data, &r.exist, &r.child};

    for (int kind = 0; kind < LK_ONE_SHOT_KINDS; kind++) {
      const lk_bytes *paths = lists[kind]->items;

      for (size_t k = 0; k < lists[kind]->count; k++)
        watch(paths[k], (lk_watch_kind)kind);
    }
    ck_assert_int_eq(encode(r.relative_zxid, DEFAULT_SEND_LIMIT), 1);
    ck_assert_uint_eq(lk__buf_len(&out), v->len);
    ck_assert_mem_eq(lk__buf_bytes(&out), v->bytes, v->len);
    end();
    count++;
  }
  lk__arena_free(&arena);
  vectors_free(&all);
  ck_assert_uint_ge(count, 2);
}
END_TEST

START_TEST(without_standing_watches_nothing_is_sent)
{
  lk_call call = {.size = sizeof call, .on_event = on_event};

  begin();
  lk_watch *w = lk__watch_new(&ws, lk_text("/a"), LK_WATCH_KIND_DATA, &call);
  ck_assert_int_eq(encode(1, DEFAULT_SEND_LIMIT), 0);
  ck_assert_uint_eq(lk__buf_len(&out), 0);
  lk__watch_drop(&ws, w);
  end();
}
END_TEST

START_TEST(a_path_is_once_in_the_list_of_each_kind_of_its_watches)
{
  size_t at = 0;

  begin();
  watch(lk_text("/a"), LK_WATCH_KIND_DATA);
  watch(lk_text("/a"), LK_WATCH_KIND_DATA);
  watch(lk_text("/a"), LK_WATCH_KIND_CHILD);
  watch(lk_text("/b"), LK_WATCH_KIND_EXIST);
  watch(lk_text("/a"), LK_WATCH_KIND_EXIST);
  ck_assert_int_eq(encode(77, DEFAULT_SEND_LIMIT), 1);
  chunk c = read_chunk(&at);
  ck_assert_int_eq(c.r.relative_zxid, 77);
  ck_assert_uint_eq(c.r.data.count, 1);
  ck_assert_uint_eq(c.r.exist.count, 2);
  ck_assert_uint_eq(c.r.child.count, 1);
  lk__arena_free(&arena);
  end();
}
END_TEST

START_TEST(request_for_persistent_watches_is_equal_to_a_captured_one)
{
  vectors all = vectors_load(NULL);
  size_t count = 0;

  for (size_t i = 0; i < all.count; i++) {
    const vector *v = &all.frames[i];

    if (v->from_server || strcmp(v->name, "setwatches2") != 0)
      continue;
    begin();
    watch(lk_text("/g/p"), LK_WATCH_KIND_PERSISTENT);
    watch(lk_text("/g/r"), LK_WATCH_KIND_RECURSIVE);
    watch(lk_text("/g/r"), LK_WATCH_KIND_RECURSIVE);
    ck_assert_int_eq(encode(0x36, DEFAULT_SEND_LIMIT), 1);
    ck_assert_uint_eq(lk__buf_len(&out), v->len);
    ck_assert_mem_eq(lk__buf_bytes(&out), v->bytes, v->len);
    end();
    count++;
  }
  vectors_free(&all);
  ck_assert_uint_eq(count, 1);
}
END_TEST

/* Decode all setWatches2 requests, and add the number of paths in each list to
   `counts`. Returns the number of requests. */
static int count_lists(const lk_buf *b, size_t counts[LK_WATCH_KINDS],
                       size_t send_limit)
{
  lk_reader in;
  int chunks = 0;

  lk__reader_init(&in, lk__buf_bytes(b), lk__buf_len(b));
  for (; lk__reader_left(&in) > 0; chunks++) {
    struct lk_set_watches2_request r;
    size_t before = lk__reader_left(&in);
    size_t len = (size_t)lk__reader_int(&in);

    lk__reader_int(&in); /* xid */
    ck_assert_int_eq(lk__reader_int(&in), LK_OPCODE_SET_WATCHES2);
    ck_assert_int_eq(
        lk__record_decode(&lk__set_watches2_request_record, &r, &in, &arena),
        0);
    ck_assert_uint_eq(before - lk__reader_left(&in), FRAME_HEADER + len);
    size_t in_chunk[LK_WATCH_KINDS] = {
        r.one_shot.data.count, r.one_shot.exist.count, r.one_shot.child.count,
        r.persistent.count, r.recursive.count};
    size_t sum = 0;

    for (int i = 0; i < LK_WATCH_KINDS; i++) {
      counts[i] += in_chunk[i];
      sum += in_chunk[i];
    }
    ck_assert_uint_ge(sum, 1);
    ck_assert(sum == 1 || len <= send_limit);
    lk__arena_free(&arena);
  }
  return chunks;
}

START_TEST(lists_of_persistent_watches_are_split_like_the_others)
{
  enum { OF_EACH_KIND = 10 };

  for (size_t limit = 36; limit < 600; limit += 7) {
    size_t counts[LK_WATCH_KINDS] = {0};
    size_t expected[LK_WATCH_KINDS];
    char path[40];

    begin();
    for (int i = 0; i < OF_EACH_KIND * LK_WATCH_KINDS; i++) {
      snprintf(path, sizeof path, "/some/path/%d", i);
      watch(lk_text(path), (lk_watch_kind)(i % LK_WATCH_KINDS));
    }
    int chunks = encode(9, limit);

    ck_assert_int_eq(count_lists(&out, counts, limit), chunks);
    ck_assert_int_ge(chunks, 2);
    for (int i = 0; i < LK_WATCH_KINDS; i++)
      expected[i] = OF_EACH_KIND;
    ck_assert_mem_eq(counts, expected, sizeof counts);
    end();
  }
}
END_TEST

/* Set many watches. The i-th path is "/i-", filled up to `len` bytes. */
static void watch_many(size_t count, size_t len)
{
  char *path = malloc(len + 32);

  for (size_t i = 0; i < count; i++) {
    int head = snprintf(path, 32, "/%zu-", i);

    memset(path + head, 'x', len);
    watch(lk_bytes_of(path, (size_t)head > len ? (size_t)head : len),
          (lk_watch_kind)(i % LK_ONE_SHOT_KINDS));
  }
  free(path);
}

/* seen[i]: how often the i-th path of watch_many() is in the requests. */
static unsigned seen[5000];

/* Count the paths of the list, and check that their watches have this kind. */
static void mark_seen(const lk_vec *v, int kind)
{
  const lk_bytes *paths = v->items;

  for (size_t i = 0; i < v->count; i++) {
    size_t number = strtoul((const char *)paths[i].at + 1, NULL, 10);

    ck_assert_uint_lt(number, sizeof seen / sizeof seen[0]);
    ck_assert_int_eq((int)(number % LK_ONE_SHOT_KINDS), kind);
    seen[number]++;
  }
}

/* Encode `count` watches, whose paths have `len` bytes, and check each chunk.
   Returns the number of chunks. */
static int check_chunks(size_t count, size_t len, size_t send_limit)
{
  size_t at = 0;

  begin();
  watch_many(count, len);
  memset(seen, 0, sizeof seen);
  int chunks = encode(5, send_limit);

  for (int i = 0; i < chunks; i++) {
    chunk c = read_chunk(&at);

    ck_assert_int_eq(c.r.relative_zxid, 5);
    if (c.paths > 1) {
      ck_assert_uint_le(c.path_bytes, 128 * 1024);
      ck_assert_uint_le(c.frame_len, send_limit);
    }
    ck_assert_uint_ge(c.paths, 1);
    mark_seen(&c.r.data, LK_WATCH_KIND_DATA);
    mark_seen(&c.r.exist, LK_WATCH_KIND_EXIST);
    mark_seen(&c.r.child, LK_WATCH_KIND_CHILD);
    lk__arena_free(&arena);
  }
  ck_assert_uint_eq(at, lk__buf_len(&out));
  for (size_t i = 0; i < count; i++)
    ck_assert_msg(seen[i] == 1, "path %zu: %u times", i, seen[i]);
  end();
  return chunks;
}

START_TEST(every_path_comes_exactly_once_however_it_is_cut)
{
  ck_assert_int_eq(check_chunks(1, 10, DEFAULT_SEND_LIMIT), 1);
  ck_assert_int_eq(check_chunks(3000, 20, DEFAULT_SEND_LIMIT), 1);
  ck_assert_int_gt(check_chunks(5000, 100, DEFAULT_SEND_LIMIT), 3);
  for (size_t limit = 28; limit < 400; limit += 5)
    check_chunks(40, 30, limit);
  for (size_t limit = 1000; limit < 1100; limit++)
    check_chunks(100, 50, limit);
}
END_TEST

START_TEST(chunks_are_as_full_as_they_may_be)
{
  enum { PATH = 28, PATH_WITH_LENGTH = 4 + PATH };
  /* The header, the zxid, the lengths of three lists. */
  enum { FIXED = 8 + 8 + 3 * 4, TEN_PATHS = FIXED + 10 * PATH_WITH_LENGTH };

  /* 4096 paths fill 128 KiB. */
  ck_assert_int_eq(check_chunks(4096, PATH, DEFAULT_SEND_LIMIT), 1);
  ck_assert_int_eq(check_chunks(4097, PATH, DEFAULT_SEND_LIMIT), 2);
  ck_assert_int_eq(check_chunks(20, PATH, TEN_PATHS), 2);
  ck_assert_int_eq(check_chunks(20, PATH, TEN_PATHS - 1), 3);
}
END_TEST

START_TEST(a_single_path_is_sent_even_beyond_the_limits)
{
  ck_assert_int_eq(check_chunks(1, 300000, DEFAULT_SEND_LIMIT), 1);
  ck_assert_int_eq(check_chunks(3, 200000, DEFAULT_SEND_LIMIT), 3);
  ck_assert_int_eq(check_chunks(3, 1000, 0), 3);
}
END_TEST

START_TEST(each_failing_allocation_is_reported)
{
  for (size_t n = 1;; n++) {
    begin();
    watch_many(200, 100);
    mem.fail_at = mem.count + n;
    int chunks = encode(5, 2000);
    bool failed = failing_mem_failed(&mem);

    ck_assert(failed == (chunks < 0));
    end();
    if (!failed) {
      ck_assert_uint_gt(n, 3); /* encoding needs a few allocations */
      break;
    }
  }
}
END_TEST

/* ---- throttled requests -------------------------------------------------- */

/* For lk__set_watches_acknowledge(), which has the number of the first request
   that failed. */
enum { ALL_SUCCEEDED = INT32_MAX };

/* A watch whose request has no reply yet. */
static lk_watch *pending(const char *path, lk_watch_kind kind)
{
  lk_call call = {.size = sizeof call, .on_event = on_event};
  lk_watch *w = lk__watch_new(&ws, lk_text(path), kind, &call);

  ck_assert_ptr_nonnull(w);
  return w;
}

static void discard_output(void)
{
  lk__buf_consume(&out, lk__buf_len(&out));
}

START_TEST(each_watch_keeps_the_zxid_at_which_its_connection_was_lost)
{
  size_t at = 0;

  begin();
  watch(lk_text("/a"), LK_WATCH_KIND_DATA);
  lk__watches_mark_missing(&ws, 5);
  watch(lk_text("/b"), LK_WATCH_KIND_DATA);
  watch(lk_text("/a"), LK_WATCH_KIND_CHILD);
  ck_assert_int_eq(encode(9, DEFAULT_SEND_LIMIT), 2);
  chunk c = read_chunk(&at);
  ck_assert_int_eq(c.r.relative_zxid, 5);
  ck_assert_uint_eq(c.r.data.count, 1);
  ck_assert_uint_eq(c.paths, 1);
  c = read_chunk(&at);
  ck_assert_int_eq(c.r.relative_zxid, 9);
  ck_assert_uint_eq(c.r.data.count, 1);
  ck_assert_uint_eq(c.r.child.count, 1);
  ck_assert_uint_eq(at, lk__buf_len(&out));
  lk__arena_free(&arena);
  end();
}
END_TEST

START_TEST(oldest_zxid_of_a_path_is_kept_and_ends_with_its_watches)
{
  begin();
  lk_watch *old = pending("/a", LK_WATCH_KIND_DATA);

  lk__watch_stand(&ws, old, LK_WATCH_KIND_DATA);
  lk__watches_mark_missing(&ws, 5);
  watch(lk_text("/a"), LK_WATCH_KIND_DATA);
  lk__watches_mark_missing(&ws, 9);
  ck_assert_int_eq(old->on->missing_after[LK_WATCH_KIND_DATA], 5);
  lk__watches_mark_missing(&ws, 3);
  ck_assert_int_eq(old->on->missing_after[LK_WATCH_KIND_DATA], 3);
  end();
  begin();
  lk_watch *later = pending("/a", LK_WATCH_KIND_DATA);

  old = pending("/a", LK_WATCH_KIND_DATA);
  lk__watch_stand(&ws, old, LK_WATCH_KIND_DATA);
  lk__watches_mark_missing(&ws, 5);
  lk__watch_drop(&ws, old);
  lk__watch_stand(&ws, later, LK_WATCH_KIND_DATA);
  ck_assert_int_eq(lk__set_watches_encode(&ws, DEFAULT_SEND_LIMIT, &out), 0);
  end();
}
END_TEST

START_TEST(requests_from_the_first_throttled_one_on_are_repeated)
{
  size_t at = 0;

  begin();
  for (int i = 1; i <= 3; i++) {
    char path[16];

    snprintf(path, sizeof path, "/%d", i);
    watch(lk_text(path), LK_WATCH_KIND_EXIST);
    lk__watches_mark_missing(&ws, i);
  }
  ck_assert_int_eq(lk__set_watches_encode(&ws, DEFAULT_SEND_LIMIT, &out), 3);
  ck_assert(lk__set_watches_acknowledge(&ws, 2)); /* 2 was throttled */
  discard_output();
  ck_assert_int_eq(lk__set_watches_encode(&ws, DEFAULT_SEND_LIMIT, &out), 2);
  ck_assert_int_eq(read_chunk(&at).r.relative_zxid, 2);
  ck_assert_int_eq(read_chunk(&at).r.relative_zxid, 3);
  ck_assert(!lk__set_watches_acknowledge(&ws, ALL_SUCCEEDED));
  ck_assert_int_eq(lk__set_watches_encode(&ws, DEFAULT_SEND_LIMIT, &out), 0);
  lk__arena_free(&arena);
  end();
}
END_TEST

START_TEST(persistent_watch_serves_no_others_while_it_is_not_registered)
{
  begin();
  lk_watch *stays = pending("/a", LK_WATCH_KIND_PERSISTENT);

  lk__watch_stand(&ws, stays, LK_WATCH_KIND_PERSISTENT);
  ck_assert(lk__watched_serves(stays->on, LK_WATCH_KIND_CHILD));
  lk__watches_mark_missing(&ws, 5);
  ck_assert(!lk__watched_will_serve(&ws, stays->on, LK_WATCH_KIND_CHILD));
  ck_assert_int_eq(lk__set_watches_encode(&ws, DEFAULT_SEND_LIMIT, &out), 1);
  ck_assert(lk__watched_will_serve(&ws, stays->on, LK_WATCH_KIND_CHILD));
  ck_assert(!lk__watched_serves(stays->on, LK_WATCH_KIND_CHILD));
  ck_assert(lk__set_watches_acknowledge(&ws, 1)); /* 1 was throttled */
  ck_assert(stays->reported_too_early);
  ck_assert(!lk__watched_will_serve(&ws, stays->on, LK_WATCH_KIND_CHILD));
  watch(lk_text("/a"), LK_WATCH_KIND_PERSISTENT); /* registers it */
  ck_assert(lk__watched_serves(stays->on, LK_WATCH_KIND_CHILD));
  ck_assert_int_eq(lk__set_watches_encode(&ws, DEFAULT_SEND_LIMIT, &out), 0);
  end();
}
END_TEST

START_TEST(one_shot_watch_waits_for_an_add_watch_under_way)
{
  begin();
  watch(lk_text("/a"), LK_WATCH_KIND_DATA);
  lk__watches_mark_missing(&ws, 5);
  lk_watch *stays = pending("/a", LK_WATCH_KIND_PERSISTENT);

  ck_assert_int_eq(lk__set_watches_encode(&ws, DEFAULT_SEND_LIMIT, &out), 0);
  ck_assert(lk__set_watches_acknowledge(&ws, ALL_SUCCEEDED));
  lk__watch_set_unsent(stays); /* the addWatch waits for a connection */
  ck_assert_int_eq(lk__set_watches_encode(&ws, DEFAULT_SEND_LIMIT, &out), 1);
  lk__watch_drop(&ws, stays);
  end();
}
END_TEST

SUITE("set_watches", request_is_equal_to_a_captured_one,
      without_standing_watches_nothing_is_sent,
      a_path_is_once_in_the_list_of_each_kind_of_its_watches,
      request_for_persistent_watches_is_equal_to_a_captured_one,
      lists_of_persistent_watches_are_split_like_the_others,
      every_path_comes_exactly_once_however_it_is_cut,
      chunks_are_as_full_as_they_may_be,
      a_single_path_is_sent_even_beyond_the_limits,
      each_failing_allocation_is_reported,
      each_watch_keeps_the_zxid_at_which_its_connection_was_lost,
      oldest_zxid_of_a_path_is_kept_and_ends_with_its_watches,
      requests_from_the_first_throttled_one_on_are_repeated,
      persistent_watch_serves_no_others_while_it_is_not_registered,
      one_shot_watch_waits_for_an_add_watch_under_way)
