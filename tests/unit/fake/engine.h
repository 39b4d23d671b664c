/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_FAKE_ENGINE_H
#define LK_UNIT_FAKE_ENGINE_H

#include <latchkey/client.h>

/**
 * A fake of src/proto for tests of the driver: a client with the outputs that
 * the test sets, which logs its inputs. A program that links it has no other
 * lk_client_new().
 */
struct lk_client {
  lk_hooks hooks;
  lk_want want; /**< set by engine_dial() */
  char host[64];
  lk_want probe; /**< set by engine_probe() */
  char probe_host[64];
  int64_t deadline; /**< set by engine_due() */
  unsigned char *out;
  size_t out_at; /**< sent so far */
  size_t out_len;
  unsigned char
      *room; /**< what lk_client_receive_buffer() gives next, or NULL */
  size_t room_size;
  size_t in_room;  /**< bytes received there */
  size_t received; /**< bytes, of all attempts */
  unsigned char last;
  unsigned receipts;
  unsigned wants;    /**< calls of lk_client_want() */
  int64_t ticked_at; /**< the clock at the last tick */
  char log[1024];    /**< what happened, a line each; the test empties it */
  int depth;         /**< in a callback */
  bool free_wanted;
  /** Told of each line, first as it was written. May be NULL. */
  void (*react)(lk_client *c, const char *line);
  void *arg; /**< the test's */
};

/** The result of lk_client_new(); 0 at first. */
extern int engine_refusal;
/** Told of each line of every client, last. May be NULL. */
extern void (*engine_told)(void);

/** Wish for a connection; attempt 0: for none. */
void engine_dial(lk_client *c, uint64_t attempt, const char *host,
                 uint16_t port, uint32_t address);
/** Wish for an answer whether a server has a quorum; probe 0: for none. */
void engine_probe(lk_client *c, uint64_t probe, const char *host,
                  uint16_t port);
/** Have `len` more bytes to send. */
void engine_write(lk_client *c, const void *bytes, size_t len);
/** Want a tick. */
void engine_due(lk_client *c, int64_t at);
/** Whether the log is exactly that; empties it if so. */
bool engine_said(lk_client *c, const char *text);

#endif
