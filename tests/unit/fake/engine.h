/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_FAKE_ENGINE_H
#define LK_UNIT_FAKE_ENGINE_H

#include <latchkey/client.h>

/**
 * A fake of src/proto for tests of the driver. This client has the outputs that
 * the test sets, and logs its inputs. A program that links it does not link the
 * functions of src/proto.
 */
struct lk_client {
  lk_hooks hooks;
  lk_want want;  /**< set by engine_want_connection() */
  char host[64]; /**< of `want` */
  lk_want probe; /**< set by engine_want_probe() */
  char probe_host[64];
  int64_t deadline_ms;  /**< set by engine_want_tick() */
  int64_t tcp_limit_ms; /**< ENGINE_TCP_LIMIT_MS, or set by the test */
  unsigned char *out;   /**< bytes to send */
  size_t out_sent;      /**< bytes of `out` that have been sent */
  size_t out_len;
  /** What lk_client_receive_buffer() returns next. May be NULL. */
  unsigned char *room;
  size_t room_size;
  size_t received_in_room;  /**< bytes, of all buffers `room` */
  size_t received;          /**< bytes, of all attempts */
  unsigned char last_byte;  /**< of those received */
  unsigned received_calls;  /**< calls of lk_client_received() */
  unsigned want_calls;      /**< calls of lk_client_want() */
  int64_t tick_ms;          /**< the clock at the last tick */
  char local[64], peer[64]; /**< addresses of the last connection */
  char log[1024];           /**< inputs, a line each; the test empties it */
  int depth;                /**< of inputs whose on_line() is running */
  bool free_wanted;         /**< the client is freed when `depth` is 0 */
  /** Called for each line of the log, without its newline. May be NULL. */
  void (*on_line)(lk_client *c, const char *line);
};

enum { ENGINE_TCP_LIMIT_MS = 1000 };

/** The result of lk_client_new(); 0 at first. */
extern int engine_new_error;
/** Called for each line of every client, after on_line(). May be NULL. */
extern void (*engine_after_line)(void);

/** Have the client want this connection. `attempt` 0: it wants none. */
void engine_want_connection(lk_client *c, uint64_t attempt, const char *host,
                            uint16_t port, uint32_t address);
/** Have the client want this probe. `probe` 0: it wants none. */
void engine_want_probe(lk_client *c, uint64_t probe, const char *host,
                       uint16_t port);
/** Give the client `len` more bytes to send. */
void engine_write(lk_client *c, const void *bytes, size_t len);
/** Have the client want a tick at this time. */
void engine_want_tick(lk_client *c, int64_t at_ms);
/** Whether the log is exactly `text`; empties the log if so. */
bool engine_take_log(lk_client *c, const char *text);

#endif
