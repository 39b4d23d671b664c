/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_SIDE_H
#define LK_DIFFERENTIAL_SIDE_H

#include "base/buf.h"

/**
 * One side of the comparison: real servers or the model, with connections that
 * the caller numbers. Calls block. Of several servers, number 0 is the leader.
 */
enum { SIDE_CONNS = 16 };

typedef enum side_result {
  SIDE_FRAME,
  SIDE_CLOSED, /**< the server closed the connection */
  SIDE_SILENT  /**< no reply for a long time */
} side_result;

typedef struct side side;

typedef struct side_kind {
  const char *name;
  void (*open)(side *s, unsigned conn, unsigned server);
  void (*send)(side *s, unsigned conn, const void *bytes, size_t len);
  /** Wait until bytes arrive or the server closes the connection; false:
      neither happens for a long time. */
  bool (*wait)(side *s, unsigned conn);
  void (*close)(side *s, unsigned conn);
  /** Let some time pass for the servers. */
  void (*pass_time)(side *s);
  /** The servers' wall clock. */
  int64_t (*now_ms)(side *s);
  void (*free)(side *s);
} side_kind;

struct side {
  const side_kind *kind;
  unsigned servers;
  char members[512]; /**< content of /zookeeper/config; "": empty */
  struct {
    lk_buf in; /**< bytes received */
    /** bytes of `in` that were returned and can be discarded */
    size_t consumed;
    bool closed; /**< by the server */
  } conns[SIDE_CONNS];
};

/** Configuration of the servers under comparison. */
typedef struct side_config {
  unsigned servers;
  int32_t tick_ms;
  int32_t min_timeout_ms;
  int32_t max_timeout_ms;
  int32_t sweep_ms; /**< interval of deleting containers and TTL nodes */
  bool ttls;        /**< extended types are enabled */
} side_config;

side *side_real_new(const side_config *config);
/** The model, with the members of the side `real`. */
side *side_model_new(const side_config *config, const side *real,
                     uint64_t seed);

void side_open(side *s, unsigned conn, unsigned server);
void side_close(side *s, unsigned conn);
/** The next frame, without its length field; valid until the next call. */
side_result side_receive(side *s, unsigned conn, lk_bytes *frame);
void side_free(side *s);

#endif
