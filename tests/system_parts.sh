#!/bin/sh
# Sets up the system programs that tests drive: `system_parts.sh PROGRAM=PACKAGE ...`.
# As root by apt; else the program must be there, and the message names its package.
missing=""
for part in "$@"; do
  command -v "${part%%=*}" >/dev/null 2>&1 || missing="$missing ${part#*=}"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086
  apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null && exit 0
fi
echo "the tests need these system packages:$missing" >&2
exit 1
