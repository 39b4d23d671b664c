#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ./configure accepts Linux hosts, and stops for others with one line that says
# why. When it compiles for another machine, it stops if a library is missing
# that is not excluded.
cd "${srcdir:-.}" || exit 99
sources=$PWD
if [ ! -x configure ]; then
  echo "there is no ./configure"
  exit 77
fi
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
failed=0

# ./configure refuses another folder if the source folder is configured.
configure=$work/sources/configure
mkdir sources && ln -s "$sources"/* sources && rm -f sources/config.status || exit 99

# A compiler that does not exist ends ./configure right after the check.
configure_for() {
  "$configure" --host="$1" CC=/nonexistent/cc >out 2>&1
}

for host in x86_64-unknown-freebsd14 i686-unknown-gnu0.9; do
  if configure_for "$host" ||
    ! grep -q '^configure: error: latchkey runs on Linux only' out; then
    echo "$host is not refused:"
    tail -n 3 out
    failed=1
  fi
done
for host in aarch64-alpine-linux-musl arm-unknown-linux-gnueabihf; do
  configure_for "$host"
  if grep -q 'runs on Linux only' out ||
    ! grep -q 'C compiler' out; then
    echo "$host is refused:"
    tail -n 3 out
    failed=1
  fi
done

# Neither libev nor any library that pkg-config finds is there. The first call
# fills a cache for the others.
cross_configure() { # OPTION...
  PKG_CONFIG_LIBDIR=/nonexistent timeout 120 "$configure" -n -q \
    --cache-file=cache --build=x86_64-linux-gnu --host=aarch64-linux-gnu \
    CC="${CC:-cc}" ac_cv_header_ev_h=no "$@" >out 2>&1
}

without='--without-libev --without-openssl --without-gsasl'
# shellcheck disable=SC2086 # a list of words
cross_configure $without || {
  echo "./configure $without fails:"
  tail -n 3 out
  failed=1
}
for option in $without; do
  # shellcheck disable=SC2046 # a list of words
  if cross_configure $(echo " $without" | sed "s/ $option//") ||
    ! grep -q "^configure: error: .* is missing .*$option " out; then
    echo "a cross build without this library needs no $option:"
    tail -n 3 out
    failed=1
  fi
done
exit $failed
