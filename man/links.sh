#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# links.sh PAGE...: each name that a page of section 3 describes under NAME and
# that has no page of its own, with the page. `make install` makes a link of it.
for page; do
  case $page in
  *.3) ;;
  *) continue ;;
  esac
  sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \([^ ]*\).*/\1/p' "$page" |
    while read -r name; do
      [ -e "${page%/*}/$name.3" ] || echo "$name ${page##*/}"
    done
done
