#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# examples/tls.c acquires its lock without and with a client certificate. A lock
# directory of a client with a certificate is closed to clients without it. A
# server with a certificate of another CA is refused, as are invalid files.

: "${abs_top_srcdir:=.}" "${abs_top_builddir:=.}"
example=$abs_top_builddir/examples/tls
if "$example" tls://127.0.0.1 /x "$0" 2>&1 | grep -q 'not implemented'; then
  echo "skipped: built without OpenSSL"
  exit 77
fi

# shellcheck disable=SC2016 # the inner shell's variables
output=$("$abs_top_srcdir/script/server" with --tls --tls-client-auth want \
  --container-check 600000 -- sh -c '
  certificates=${LATCHKEY_TLS_CACERT%/*}
  try() {
    echo "-- $*"
    "$example" "$LATCHKEY_ZK" "$@" 2>&1
    echo "exit code $?"
  }
  example=$1
  cd "$certificates" || exit
  try /open ca.crt
  try /owned ca.crt client.crt client.key
  try /owned ca.crt
  try /owned ca.crt client-bob.crt client-bob.key
  try /open other-ca.crt
  try /open ca.key' - "$example")
result=$?
echo "$output"
[ $result = 0 ] || exit $result
# The token, the server and the reason of OpenSSL differ in each run.
[ "$(echo "$output" | sed 's/token [1-9][0-9]*$/token N/
  s/[0-9.]*:2281:/SERVER:/; s/\(is refused\): .*/\1/')" = "\
-- /open ca.crt
held, fencing token N
access to /open: world:anyone:cdrwa
released
exit code 0
-- /owned ca.crt client.crt client.key
held, fencing token N
access to /owned: x509:CN=alice,O=latchkey:cdrwa
released
exit code 0
-- /owned ca.crt
/owned: not allowed by the node's access list
exit code 1
-- /owned ca.crt client-bob.crt client-bob.key
/owned: not allowed by the node's access list
exit code 1
-- /open other-ca.crt
/open: the deadline has passed: SERVER: TLS: the server's certificate is refused
exit code 1
-- /open ca.key
cannot set up TLS: TLS: ca.key: has no certificate
exit code 1" ]
