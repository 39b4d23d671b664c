/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_RAW_CLIENT_H
#define LK_SIM_MODEL_RAW_CLIENT_H

#include "base/buf.h"
#include "proto/wire/opcode.h"
#include "sim/model/ensemble.h"

/**
 * An ensemble on its own virtual time, for tests of the model. Raw clients send
 * single requests to one of its servers; their bytes arrive without delay.
 */
typedef struct sim_lab {
  sim_agenda agenda;
  sim_trace trace;
  sim_ensemble *ensemble;
} sim_lab;

/** Make the ensemble and wait until all servers serve. SIM_TRACE=1 in the
    environment prints the trace. */
void sim_lab_init(sim_lab *lab, const sim_ensemble_config *config,
                  uint64_t seed, const sim_ensemble_hooks *hooks);
void sim_lab_free(sim_lab *lab);
void sim_lab_run(sim_lab *lab, int64_t ms);
sim_server *sim_lab_server(sim_lab *lab, unsigned i);
/** Run until there is a leader. Returns its index, or -1 if a minute was not
    enough. */
int sim_lab_wait_leader(sim_lab *lab);
/** The same for a leader other than `deposed`. */
int sim_lab_wait_other_leader(sim_lab *lab, unsigned deposed);
/** Run until all running servers serve; false: not within a minute. */
bool sim_lab_wait_serving(sim_lab *lab);

typedef struct sim_raw_client {
  sim_lab *lab;
  sim_conn *conn; /**< NULL: closed, or never opened */
  lk_buf in;      /**< bytes received and not consumed */
  size_t frame;   /**< length of the frame at the start of `in` that the caller
                     reads; 0: none */
  int32_t xid;    /**< of the last request */
  int64_t session; /**< 0: none yet */
  int32_t timeout_ms;
  unsigned char password[16];
} sim_raw_client;

/** A reply or event; valid until the next sim_raw_client_next(). */
typedef struct sim_reply {
  bool closed; /**< there is no frame: the server closed the connection */
  int32_t xid;
  int64_t zxid;
  int err;
  lk_reader body;
} sim_reply;

void sim_raw_client_init(sim_raw_client *c, sim_lab *lab);
void sim_raw_client_free(sim_raw_client *c);
/** Open a connection without a handshake. */
void sim_raw_client_open(sim_raw_client *c, unsigned server);
/** Open a connection. Resume the client's session, or create one if it has
    none. false: refused or closed. */
bool sim_raw_client_connect(sim_raw_client *c, unsigned server,
                            int32_t timeout_ms, int64_t zxid_seen);
void sim_raw_client_hang_up(sim_raw_client *c);
/** Send a request; returns its xid. */
int32_t sim_raw_client_send(sim_raw_client *c, int32_t op, const void *request);
/** Send a request with this xid. */
int32_t sim_raw_client_send_as(sim_raw_client *c, int32_t xid, int32_t op,
                               const void *request);
int32_t sim_raw_client_create(sim_raw_client *c, const char *path,
                              int32_t flags);
int32_t sim_raw_client_delete(sim_raw_client *c, const char *path);
/** Send a read with opcode `op`: exists, getData, getChildren or
    getChildren2. */
int32_t sim_raw_client_read(sim_raw_client *c, int32_t op, const char *path);
/** The same with a watch. */
int32_t sim_raw_client_watch(sim_raw_client *c, int32_t op, const char *path);
int32_t sim_raw_client_sync(sim_raw_client *c, const char *path);
/** Whether bytes have arrived behind the frame that the caller reads. */
bool sim_raw_client_has_bytes(const sim_raw_client *c);
/** Wait for the next frame, for a minute at most; then `closed` is true. */
sim_reply sim_raw_client_next(sim_raw_client *c);
/** The functions sim_raw_client_do_ send a request, discard the events before
    its reply, and return the error of the reply. */
int sim_raw_client_do_create(sim_raw_client *c, const char *path,
                             int32_t flags);
int sim_raw_client_do_delete(sim_raw_client *c, const char *path);
int sim_raw_client_do_read(sim_raw_client *c, int32_t op, const char *path);
int sim_raw_client_do_watch(sim_raw_client *c, int32_t op, const char *path);
int sim_raw_client_do_sync(sim_raw_client *c, const char *path);

#endif
