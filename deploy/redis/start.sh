#!/bin/sh
# Redis for docker-compose.yml: the users of users.acl with the password of the environment, every write in
# the append-only file, and nothing evicted. Begins as root, to own its volume; Redis itself does not run so.
set -eu
: "${REDIS_PASSWORD:?must be set}" "${REDIS_MAXMEMORY:?must be set}"
here=$(dirname "$0")
users=/run/redis/users.acl
umask 077
mkdir -p /run/redis /data
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
