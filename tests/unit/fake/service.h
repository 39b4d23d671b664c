/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_FAKE_SERVICE_H
#define LK_UNIT_FAKE_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ev_loop;

/**
 * A server on loopback, in the test's own loop. It accepts every session,
 * answers pings and closeSession, and replies NO_NODE to other requests. It
 * does not keep the loop running.
 */
typedef struct service service;

typedef struct service_faults {
  bool mute; /**< accepts connections and sends nothing */
  bool slow; /**< sends one byte in each turn of the loop */
  bool idle; /**< answers the handshake only */
} service_faults;

service *service_new(struct ev_loop *loop, uint16_t *port);
/** Closes all connections. */
void service_free(service *s);
service_faults *service_faults_of(service *s);
/** Connections accepted, handshakes of a resumed session, other requests. */
unsigned service_accepted(const service *s);
unsigned service_resumed(const service *s);
unsigned service_requests(const service *s);
/** Reset all connections. */
void service_reset(service *s);

#endif
