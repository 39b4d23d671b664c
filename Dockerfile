# SPDX-License-Identifier: Apache-2.0
#
# An image with nothing but the command latchkey, with TLS (doc/static.md):
#
#   docker build -t latchkey .
#   docker run --rm latchkey status -z zk1,zk2,zk3 /locks/nightly
#
# `latchkey run` needs the program that it starts. Take the command into the
# image of the program:
#
#   COPY --from=latchkey /latchkey /usr/local/bin/

FROM debian:bookworm-slim AS builder
COPY . /src
WORKDIR /src
RUN script/bootstrap static-tls
RUN script/static --with-tls --output /out

FROM scratch
COPY --from=builder /out/bin/latchkey /latchkey
ENTRYPOINT ["/latchkey"]
