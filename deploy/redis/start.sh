#!/bin/sh
# Redis for docker-compose.yml: the users of users.acl with the password of the environment, every write in
# the append-only file, and nothing evicted. Begins as root, to own its volume; Redis itself does not run so.
# With arguments it runs those instead: docker compose run --rm redis redis-check-aof ...
set -eu
if [ $# -gt 0 ]; then exec "$@"; fi
: "${REDIS_PASSWORD:?must be set}" "${REDIS_MAXMEMORY:?must be set}"
here=$(dirname "$0")
users=/run/redis/users.acl

refuse() {
    echo "error: $1" >&2
    exit 78
}

in_bytes() { # of 1gb, 512mb, ...: Redis' units
    number=$(echo "$1" | tr -d 'a-zA-Z')
    case $(echo "$1" | tr -d '0-9' | tr A-Z a-z) in
    "" | b) echo "$number" ;;
    k) echo $((number * 1000)) ;;
    kb) echo $((number * 1024)) ;;
    m) echo $((number * 1000000)) ;;
    mb) echo $((number * 1048576)) ;;
    g) echo $((number * 1000000000)) ;;
    gb) echo $((number * 1073741824)) ;;
    esac
}

echo "$REDIS_MAXMEMORY" | grep -Eixq '[1-9][0-9]{0,11}([kmg]?b|[kmg])?' ||
    refuse "REDIS_MAXMEMORY=$REDIS_MAXMEMORY: must be a size such as 512mb or 2gb"
limit=$(cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null | head -n 1)
case $limit in
"" | max) ;;
*) [ "$(in_bytes "$REDIS_MAXMEMORY")" -lt "$limit" ] ||
    refuse "REDIS_MAXMEMORY=$REDIS_MAXMEMORY does not fit into REDIS_MEMORY_LIMIT ($limit bytes), which is better twice as large" ;;
esac

umask 077
mkdir -p /run/redis /data
# Two servers on one append-only file would spoil it. The lock is Redis' own from here on, until it ends.
exec 9>/data/lock
flock --nonblock 9 || refuse "another Redis runs on this volume"
hash=$(printf %s "$REDIS_PASSWORD" | sha256sum | cut -d ' ' -f 1)
sed "s/>change-this-[a-z]*-password/#$hash/" "$here/users.acl" >"$users"
case $(redis-server --version) in
*v=7.0.*) sed -i 's/ +client|setinfo//' "$users" ;; # a later command, which clients do without
esac
chown -R redis:redis /run/redis /data
unset REDIS_PASSWORD
exec setpriv --reuid=redis --regid=redis --init-groups redis-server \
    --bind '* -::*' --protected-mode no --dir /data --aclfile "$users" \
    --appendonly yes --appendfsync everysec --save '' \
    --maxmemory "$REDIS_MAXMEMORY" --maxmemory-policy noeviction
