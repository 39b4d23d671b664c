/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/stream.h"

#include "base/mem.h"

bool lk__stream_init(lk_stream *s, lk_loop *loop, const lk_transport_type *type,
                     const lk_mem *mem)
{
  s->loop = loop;
  s->type = type;
  s->transport = lk__mem_new(mem, type->size);
  if (s->transport == NULL)
    return false;
  s->transport->fd = -1;
  return true;
}

lk_flow lk__stream_connect(lk_stream *s, const lk_stream_target *to)
{
  lk_address address = *to->address;
  const lk_endpoint endpoint = {.address = &address.any,
                                .address_len = lk__address_len(&address),
                                .host = to->host,
                                .tls = to->tls};

  lk__address_set_port(&address, to->port);
  lk_flow flow = s->type->open(s->transport, &endpoint);

  s->io.fd = s->transport->fd;
  return flow;
}

bool lk__stream_await(lk_stream *s, lk_flow flow)
{
  int events = flow == LK_FLOW_READ    ? LK_LOOP_READ
               : flow == LK_FLOW_WRITE ? LK_LOOP_WRITE
                                       : 0;

  if (events != 0)
    lk__loop_set_io(s->loop, &s->io, events);
  return events != 0;
}

bool lk__stream_has_more(const lk_stream *s)
{
  return s->type->has_more != NULL && s->type->has_more(s->transport);
}

void lk__stream_close(lk_stream *s)
{
  if (s->transport == NULL)
    return;
  lk__loop_set_io(s->loop, &s->io, 0);
  s->type->close(s->transport);
}

void lk__stream_free(lk_stream *s, const lk_mem *mem)
{
  if (s->transport != NULL && s->type->end != NULL)
    s->type->end(s->transport);
  lk__mem_free(mem, s->transport);
}
