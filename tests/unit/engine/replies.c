/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Every kind of reply: complete, in pieces, truncated, with any byte changed,
 * and with the connection closed in the middle.
 */

#include "support/harness.h"
#include "support/suite.h"
#include "support/wire.h"
#include "support/words.h"
#include "vectors/vectors.h"

#include <stdio.h>

static harness *h;

static int get(void)
{
  return harness_get(h, &(harness_call){.name = "x", .watch = "w"}, "/a");
}

static int exists(void)
{
  return harness_exists(h, &(harness_call){.name = "x", .watch = "w"}, "/a");
}

static int children(void)
{
  return harness_children(h, &(harness_call){.name = "x", .watch = "w"}, "/a");
}

static int reads(void)
{
  lk_read list = lk_read_get_children("/a");

  return harness_multi_read(h, &(harness_call){.name = "x"}, &list, 1);
}

static int create(void)
{
  return harness_create(h, &(harness_call){.name = "x"}, false, "/a",
                        lk_text(""), 0);
}

static int create2(void)
{
  return harness_create(h, &(harness_call){.name = "x"}, true, "/a",
                        lk_text(""), 0);
}

static int container(void)
{
  return harness_create(h, &(harness_call){.name = "x"}, true, "/a",
                        lk_text(""), LK_CONTAINER);
}

static int set(void)
{
  return harness_set(h, &(harness_call){.name = "x"}, "/a", lk_text(""), -1);
}

static int sync(void)
{
  return harness_sync(h, &(harness_call){.name = "x"}, "/a");
}

static int erase(void)
{
  return harness_delete(h, &(harness_call){.name = "x"}, "/a", -1);
}

static int multi(void)
{
  lk_op ops[] = {lk_op_create("/a", lk_text(""), NULL, 0),
                 lk_op_set("/a", lk_text(""), -1), lk_op_check("/b", 3)};

  return harness_multi(h, &(harness_call){.name = "x"}, ops, 3);
}

/* Constants for the column is_write. */
enum { READ = false, WRITE = true };

static const struct kind {
  const char *name;
  int (*send_request)(void);
  const char *body;   /* in the words of transcripts: see words_encode() */
  const char *result; /* a part of the log, which the reply must add */
  bool is_write;
} kinds[] = {
    {"get", get, "\"data\" stat=7", "x: ok data=\"data\" stat{c=7 ", READ},
    {"get null", get, "null stat=7", "x: ok data=null stat{c=7 ", READ},
    {"exists", exists, "stat=7", "x: ok stat{c=7 ", READ},
    {"children", children, "count=2 \"a\" \"bc\" stat=7",
     "x: ok names#=2 \"a\" \"bc\" stat{c=7 ", READ},
    {"read of children", reads, "part=8,0 count=1 \"a\" end", "x: ok\n", READ},
    {"no children", children, "count=0 stat=7", "x: ok names#=0 stat{c=7 ",
     READ},
    {"create", create, "\"/a\"", "x: ok path=\"/a\"\n", WRITE},
    {"create2", create2, "\"/a\" stat=7", "x: ok path=\"/a\" stat{c=7 ", WRITE},
    {"container", container, "\"/a\" stat=7", "x: ok path=\"/a\" stat{c=7 ",
     WRITE},
    {"set", set, "stat=7", "x: ok stat{c=7 ", WRITE},
    {"sync", sync, "\"/a\"", "x: ok\n", READ},
    {"delete", erase, "", "x: ok\n", WRITE},
    {"multi", multi, "part=1,0 \"/a\" part=5,0 stat=7 part=13,0 end",
     "  1 ok /a\n  5 ok stat\n  13 ok\nx: ok\n", WRITE},
    {"failed multi", multi,
     "part=-1,0 int=0 part=-1,-103 int=-103 part=-1,-2 int=-2 end",
     "  -1 ok\n  -1 BAD_VERSION\n  -1 RUNTIME_INCONSISTENCY\nx: BAD_VERSION\n",
     WRITE},
};
enum { NKINDS = sizeof kinds / sizeof kinds[0] };

static const char *log_text(void)
{
  static lk_buf text;

  if (text.mem == NULL)
    text = wire_buf();
  lk__buf_consume(&text, lk__buf_len(&text));
  ck_assert(
      lk__buf_append(&text, lk__buf_bytes(&h->log), lk__buf_len(&h->log)));
  wire_say(&text, "%c", '\0');
  return (const char *)lk__buf_bytes(&text);
}

static void begin(const struct kind *k)
{
  lk_client_config config = {.size = sizeof config};
  lk_buf b = wire_buf();

  h = calloc(1, sizeof *h);
  failing_mem_init(&h->mem);
  h->mute = true;
  ck_assert_int_eq(harness_init(h, &config), 0);
  harness_settle(h);
  harness_connected(h);
  wire_welcome(&b, 0x10, 30000);
  harness_receive(h, lk__buf_bytes(&b), lk__buf_len(&b));
  lk__buf_free(&b);
  ck_assert_int_eq(k->send_request(), 0);
  harness_settle(h);
}

static void end(void)
{
  harness_done(h);
  free(h);
}

/* The frame of the reply, with its length. Returns it in a buffer that the
   caller frees. */
static lk_buf reply_to(const struct kind *k, int32_t err)
{
  lk_buf b = wire_buf();
  size_t mark = wire_begin(&b);
  words *w = malloc(sizeof *w);

  wire_header(&b, 1, 9, err);
  words_cut(w, k->body, strlen(k->body));
  words_encode(w, &b);
  wire_end(&b, mark);
  free(w);
  return b;
}

static void expect_result(const struct kind *k)
{
  ck_assert_msg(strstr(log_text(), k->result) != NULL, "%s: %s", k->name,
                log_text());
  ck_assert_int_eq(lk_client_state(h->client), LK_STATE_CONNECTED);
  ck_assert_uint_eq(harness_open_requests(h), 0);
}

/* `how`, `at`: what the test did to the reply, and at which byte. */
static void expect_lost_connection(const struct kind *k, const char *how,
                                   size_t at)
{
  const char *lost = k->is_write ? "\nx: IN_DOUBT\n" : "\nx: CONNECTION_LOSS\n";

  ck_assert_msg(strstr(log_text(), lost) != NULL, "%s, %s at %zu: %s", k->name,
                how, at, log_text());
  ck_assert_int_eq(lk_client_state(h->client), LK_STATE_SUSPENDED);
  ck_assert_uint_eq(harness_open_requests(h), 0);
}

START_TEST(complete_reply_gives_its_result)
{
  for (int i = 0; i < NKINDS; i++) {
    lk_buf b = reply_to(&kinds[i], 0);

    begin(&kinds[i]);
    harness_receive(h, lk__buf_bytes(&b), lk__buf_len(&b));
    expect_result(&kinds[i]);
    end();
    lk__buf_free(&b);
  }
}
END_TEST

START_TEST(reply_in_pieces_gives_its_result)
{
  for (int i = 0; i < NKINDS; i++) {
    lk_buf b = reply_to(&kinds[i], 0);

    for (size_t step = 1; step < lk__buf_len(&b); step++) {
      begin(&kinds[i]);
      h->step = step;
      harness_receive(h, lk__buf_bytes(&b), lk__buf_len(&b));
      expect_result(&kinds[i]);
      end();
    }
    lk__buf_free(&b);
  }
}
END_TEST

START_TEST(bytes_behind_a_reply_are_ignored)
{
  for (int i = 0; i < NKINDS; i++) {
    lk_buf b = reply_to(&kinds[i], 0);

    ck_assert(lk__buf_append(&b, "\xff\xff\xff\xff\xff", 5));
    wire_end(&b, 0); /* the frame, from byte 0, now includes these bytes */
    begin(&kinds[i]);
    harness_receive(h, lk__buf_bytes(&b), lk__buf_len(&b));
    expect_result(&kinds[i]);
    end();
    lk__buf_free(&b);
  }
}
END_TEST

/* A body that can be decoded, and that no server sends. */
START_TEST(impossible_reply_drops_the_connection)
{
  static const struct kind impossible[] = {
      {"empty name", children, "count=2 \"a\" \"\" stat=7", NULL, READ},
      {"slash in a name", children, "count=1 \"a/b\" stat=7", NULL, READ},
      {"slash in a read", reads, "part=8,0 count=1 \"../a\" end", NULL, READ},
      {"list, czxid -1", children, "count=0 stat=-1", NULL, READ},
      {"get, czxid -1", get, "\"data\" stat=-1", NULL, READ},
      {"ephemeral, czxid 0", exists, "zeros=44 long=5 zeros=16", NULL, READ},
      {"set of an ephemeral, czxid 0", set, "zeros=44 long=5 zeros=16", NULL,
       WRITE},
      {"create, czxid 0", create2, "\"/a\" stat=0", NULL, WRITE},
      {"create, czxid of the future", create2, "\"/a\" stat=10", NULL, WRITE},
      {"container, czxid 0", container, "\"/a\" stat=0", NULL, WRITE}};

  for (size_t i = 0; i < sizeof impossible / sizeof impossible[0]; i++) {
    const struct kind *k = &impossible[i];
    lk_buf b = reply_to(k, 0);

    begin(k);
    harness_receive(h, lk__buf_bytes(&b), lk__buf_len(&b));
    expect_lost_connection(k, "impossible", i);
    end();
    lk__buf_free(&b);
  }
}
END_TEST

static void receive_at_zxid(int64_t zxid)
{
  lk_buf b = wire_buf();

  wire_reply(&b, 1, zxid, 0);
  harness_receive(h, lk__buf_bytes(&b), lk__buf_len(&b));
  lk__buf_free(&b);
}

START_TEST(write_without_a_zxid_drops_the_connection)
{
  static const struct kind deletion = {"delete", erase, "", NULL, WRITE};

  for (int64_t zxid = -1; zxid <= 0; zxid++) {
    begin(&deletion);
    receive_at_zxid(zxid);
    expect_lost_connection(&deletion, "zxid", 0);
    end();
  }
}
END_TEST

enum { LENGTH_SIZE = 4 }; /* bytes of the length in front of a frame */

START_TEST(truncated_reply_drops_the_connection)
{
  for (int i = 0; i < NKINDS; i++) {
    lk_buf b = reply_to(&kinds[i], 0);

    for (size_t len = 0; len < lk__buf_len(&b) - LENGTH_SIZE; len++) {
      unsigned char *cut = exactly(lk__buf_bytes(&b), LENGTH_SIZE + len);

      cut[2] = (unsigned char)(len >> 8);
      cut[3] = (unsigned char)len;
      begin(&kinds[i]);
      harness_receive(h, cut, LENGTH_SIZE + len);
      expect_lost_connection(&kinds[i], "cut", len);
      end();
      free(cut);
    }
    lk__buf_free(&b);
  }
}
END_TEST

START_TEST(connection_may_end_within_a_reply)
{
  for (int i = 0; i < NKINDS; i++) {
    lk_buf b = reply_to(&kinds[i], 0);

    for (size_t len = 0; len < lk__buf_len(&b); len++) {
      begin(&kinds[i]);
      harness_receive(h, lk__buf_bytes(&b), len);
      harness_failed(h, 0, NULL);
      expect_lost_connection(&kinds[i], "closed", len);
      end();
    }
    lk__buf_free(&b);
  }
}
END_TEST

/* With a changed byte the request may succeed or fail. In any case it completes
   once, which end() checks, and no byte outside the frame is read. */
START_TEST(any_byte_of_a_reply_may_be_wrong)
{
  static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};

  for (int i = 0; i < NKINDS; i++) {
    lk_buf b = reply_to(&kinds[i], 0);

    for (size_t at = 0; at < lk__buf_len(&b); at++) {
      for (size_t k = 0; k < sizeof values; k++) {
        unsigned char *bad = exactly(lk__buf_bytes(&b), lk__buf_len(&b));

        bad[at] = values[k];
        begin(&kinds[i]);
        harness_receive(h, bad, lk__buf_len(&b));
        end();
        free(bad);
      }
    }
    lk__buf_free(&b);
  }
}
END_TEST

START_TEST(error_completes_a_request_with_any_bytes_behind_it)
{
  for (int i = 0; i < NKINDS; i++) {
    lk_buf b = reply_to(&kinds[i], LK_ERR_NO_AUTH);

    begin(&kinds[i]);
    harness_receive(h, lk__buf_bytes(&b), lk__buf_len(&b));
    ck_assert_ptr_nonnull(strstr(log_text(), "\nx: NO_AUTH\n"));
    ck_assert_int_eq(lk_client_state(h->client), LK_STATE_CONNECTED);
    end();
    lk__buf_free(&b);
  }
}
END_TEST

START_TEST(request_completes_once_when_memory_fails)
{
  for (int i = 0; i < NKINDS; i++) {
    lk_buf b = reply_to(&kinds[i], 0);

    for (size_t n = 1;; n++) {
      begin(&kinds[i]);
      h->mem.fail_at = h->mem.count + n;
      h->step = 5;
      harness_receive(h, lk__buf_bytes(&b), lk__buf_len(&b));
      bool failed = failing_mem_failed(&h->mem);

      ck_assert_uint_eq(harness_open_requests(h), 0);
      if (!failed)
        expect_result(&kinds[i]);
      end();
      if (!failed)
        break;
    }
    lk__buf_free(&b);
  }
}
END_TEST

SUITE("replies", complete_reply_gives_its_result,
      reply_in_pieces_gives_its_result, bytes_behind_a_reply_are_ignored,
      impossible_reply_drops_the_connection,
      write_without_a_zxid_drops_the_connection,
      truncated_reply_drops_the_connection, connection_may_end_within_a_reply,
      any_byte_of_a_reply_may_be_wrong,
      error_completes_a_request_with_any_bytes_behind_it,
      request_completes_once_when_memory_fails)
