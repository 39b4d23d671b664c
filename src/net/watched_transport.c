/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/watched_transport.h"

#include "base/mem.h"

bool lk__watched_transport_init(lk_watched_transport *s, lk_loop *loop,
                                const lk_transport_type *type,
                                const lk_mem *mem)
{
  s->loop = loop;
  s->type = type;
  s->object = lk__mem_new(mem, type->object_size);
  if (s->object == NULL)
    return false;
  s->object->fd = -1;
  return true;
}

lk_flow lk__watched_transport_connect(lk_watched_transport *s,
                                      const lk_transport_target *to)
{
  lk_address address = *to->address;
  const lk_endpoint endpoint = {.size = sizeof endpoint,
                                .address = &address.any,
                                .address_len = lk__address_len(&address),
                                .host = to->host,
                                .tls = to->tls};

  lk__address_set_port(&address, to->port);
  lk_flow flow = s->type->open(s->object, &endpoint);

  s->io.fd = s->object->fd;
  return flow;
}

bool lk__watched_transport_watch_for(lk_watched_transport *s, lk_flow flow)
{
  if (flow != LK_FLOW_READ && flow != LK_FLOW_WRITE)
    return false;
  lk__loop_set_io(s->loop, &s->io,
                  flow == LK_FLOW_READ ? LK_LOOP_READ : LK_LOOP_WRITE);
  return true;
}

bool lk__watched_transport_has_tcp(const lk_watched_transport *s)
{
  lk_address peer;
  socklen_t len = sizeof peer;

  return getpeername(s->object->fd, &peer.any, &len) == 0;
}

void lk__watched_transport_close(lk_watched_transport *s)
{
  if (s->object == NULL)
    return;
  lk__loop_stop_io(s->loop, &s->io);
  s->type->close(s->object);
}

void lk__watched_transport_free(lk_watched_transport *s, const lk_mem *mem)
{
  if (s->object != NULL && s->type->end != NULL)
    s->type->end(s->object);
  lk__mem_free(mem, s->object);
}
