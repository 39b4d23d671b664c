/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_SIDE_H
#define LK_DIFFERENTIAL_SIDE_H

#include "base/buf.h"

/**
 * Servers to talk to, the real ones or the model, over connections that the
 * caller numbers. Whoever asks waits. Of several servers, 0 is the leader.
 */
enum { SIDE_CONNS = 16 };

typedef enum side_result {
  SIDE_FRAME,
  SIDE_CLOSED, /**< by the server */
  SIDE_SILENT  /**< nothing came for very long */
} side_result;

typedef struct side side;

typedef struct side_kind {
  const char *name;
  void (*open)(side *s, unsigned conn, unsigned server);
  void (*send)(side *s, unsigned conn, const void *bytes, size_t len);
  /** Until more is in or the server has closed it; false: neither happens. */
  bool (*wait)(side *s, unsigned conn);
  void (*close)(side *s, unsigned conn);
  /** Let the servers do something. */
  void (*rest)(side *s);
  /** The servers' wall clock. */
  int64_t (*now_ms)(side *s);
  void (*free)(side *s);
} side_kind;

struct side {
  const side_kind *kind;
  unsigned servers;
  char members[512]; /**< what /zookeeper/config says; "": nothing */
  struct {
    lk_buf in;
    size_t handed; /**< bytes of `in` that were handed out and can go */
    bool closed;   /**< by the server */
  } conns[SIDE_CONNS];
};

/** What servers under comparison are told; in ms. */
typedef struct side_config {
  unsigned servers;
  int32_t tick;
  int32_t min_timeout;
  int32_t max_timeout;
  int32_t sweep; /**< of containers and TTL nodes */
  bool ttls;     /**< extended types are on */
} side_config;

side *side_real_new(const side_config *config);
/** It says that it has the same members as `like`. */
side *side_model_new(const side_config *config, const side *like,
                     uint64_t seed);

void side_open(side *s, unsigned conn, unsigned server);
void side_close(side *s, unsigned conn);
/** The next frame, without its length; valid until the next call. */
side_result side_receive(side *s, unsigned conn, lk_bytes *frame);
void side_free(side *s);

#endif
