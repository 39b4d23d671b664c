#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The sources keep the rules of the layout: each folder includes only headers of
# the folders below it, the core includes no system header with functions that
# block or tell the time, config.h is included first, and each file names its
# licence.

cd "${srcdir:-.}" || exit 99
failed=0

complain() {
  echo "$1"
  failed=1
}

# The includes of all files of a folder, as FILE:LINE:"name" or <name>.
includes_of() {
  find "$1" -name '*.[ch]' -exec grep -nE '^ *# *include' /dev/null {} + |
    sed 's/# *include *//; s/ *\/\*.*//'
}

# may_include FOLDER REGEX: every include line of src/FOLDER matches.
may_include() {
  wrong=$(includes_of "src/$1" | grep -vE ":($2)\$")
  [ -z "$wrong" ] || complain "src/$1 must not include:
$wrong"
}

# The headers of C11 that the core may include: none for files or the time.
# <stdio.h> is allowed for snprintf; check_symbols.sh checks that the core uses
# nothing else of it.
plain='<(assert|ctype|errno|inttypes|limits|stdalign|stdarg|stdbool|stddef|stdint|stdio|stdlib|string)\.h>'
public='<latchkey/(acl|client|driver|ensemble|error|leader|lease|lock|member|multi|multilock|nodes|request|roster|rwlock|sasl|semaphore|single|subscribe|tls|types|version|watch)\.h>'

may_include base "\"config\.h\"|\"base/.*\"|$plain|<latchkey/(acl|error|types|version)\.h>|<uthash\.h>"
may_include jute "\"config\.h\"|\"(base|jute)/.*\"|$plain|<latchkey/(error|types)\.h>"
may_include sasl "\"config\.h\"|\"(base|sasl)/.*\"|<latchkey/(error|sasl|types)\.h>|<(errno|fcntl|gsasl|stdbool|stddef|unistd)\.h>"
may_include proto "\"config\.h\"|\"(base|jute|proto|sasl)/.*\"|$plain|$public"
may_include net "\"config\.h\"|\"(base|net)/.*\"|\"proto/engine/tls_config\.h\"|<.*>"
may_include ev "\"config\.h\"|\"(base|net|ev)/.*\"|<.*>"
may_include poll "\"config\.h\"|\"(base|net|poll)/.*\"|<.*>"
may_include recipes "\"config\.h\"|\"(base|recipes)/.*\"|\"proto/engine/lease_slot\.h\"|$plain|$public"
may_include sync "\"config\.h\"|\"(base|net|sync)/.*\"|\"poll/loop\.h\"|<.*>"
may_include cli "\"config\.h\"|\"base/(list|mem|missing_call)\.h\"|\"cli/.*\"|\"net/(clock|driver|loop|resolver|watched_transport)\.h\"|\"poll/loop\.h\"|<.*>"

# These two folders have a loop of poll/loop.h, and no public driver.
wrong=$(includes_of src/sync; includes_of src/cli)
wrong=$(echo "$wrong" | grep -E ':<(ev|latchkey/(ev|poll|latchkey))\.h>$')
[ -z "$wrong" ] || complain "src/sync and src/cli must not include:
$wrong"

# The folders of src/recipes, the lowest first. Each may include the headers of
# src/recipes itself, and of the folders that its line names, so that no two
# folders depend on each other.
recipes='
queue:
locks:queue
nodes:
'

below=
for line in $(echo "$recipes" | tr ' ' ','); do
  folder=${line%%:*}
  allowed=$(echo "${line#*:}" | tr ',' ' ')
  for f in $allowed; do
    case " $below " in
    *" $f "*) ;;
    *) complain "$0: src/recipes/$f is not below src/recipes/$folder" ;;
    esac
  done
  below="$below $folder"
  wrong=$(includes_of "src/recipes/$folder" | grep '"recipes/' |
    grep -vE "\"recipes/([a-z_]+\.h|($(echo "$folder $allowed" | tr ' ' '|'))/)")
  [ -z "$wrong" ] || complain "src/recipes/$folder must not include:
$wrong"
done
wrong=$(includes_of src/recipes | grep '^src/recipes/[a-z_]*\.[ch]:' |
  grep '"recipes/[a-z_]*/')
[ -z "$wrong" ] || complain "src/recipes itself must not include:
$wrong"
for f in src/recipes/*/; do
  f=$(basename "$f")
  case " $below " in
  *" $f "*) ;;
  *) complain "$0: src/recipes/$f has no line here" ;;
  esac
done

# Installed headers include only installed headers and those of C11.
wrong=$(includes_of include/latchkey |
  grep -vE ":(<latchkey/.*>|<(stdbool|stddef|stdint|string)\.h>)\$")
[ -z "$wrong" ] || complain "public headers must not include:
$wrong"

# The bench measures public functions only.
wrong=$(includes_of bench | grep -vE ':("(bench|workloads)\.h"|<.*>)$')
[ -z "$wrong" ] || complain "bench must not include:
$wrong"

# One awk reads all files: a process for each would take half a minute.
late=$(find src tests -name '*.c' | sort | xargs awk '
  FNR == 1 { found = 0 }
  !found && /^ *# *include/ {
    found = 1
    if ($0 !~ /"config\.h"/)
      print FILENAME
  }')
[ -z "$late" ] || complain "config.h must come first in:
$late"

# Only sources are checked, by their names: after a build in the source tree the
# folders contain objects, too.
sources=$(find src include/latchkey tests fuzz bench examples \
  -name '*.[ch]' -o -name '*.def' -o -name '*.h.in' -o -name '*.am' \
  -o -name '*.py' -o -name '*.sh'
  find script -type f)
# shellcheck disable=SC2086 # a list of names without blanks
bare=$(awk '
  FNR <= 3 && /SPDX-License-Identifier: Apache-2.0/ { licensed[FILENAME] }
  END {
    for (i = 1; i < ARGC; i++)
      if (!(ARGV[i] in licensed))
        print ARGV[i]
  }' $sources Makefile.am configure.ac)
[ -z "$bare" ] || complain "no licence line in:
$bare"

exit $failed
