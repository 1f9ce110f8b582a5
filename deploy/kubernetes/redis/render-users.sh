# The users of the ACL files with the passwords of the Secret, as hashes: so any characters will do, and
# no file of this pod holds a password of the examples.
# From the environment: USERS and SCALER (files), PASSWORDS (folder, a file for each user), ACL (the result).
set -eu
umask 077

cat "$USERS" "$SCALER" > "$ACL"
for user in gateway worker scaler; do
  password="$PASSWORDS/$user"
  if [ "$(wc -c < "$password")" -lt 16 ]; then
    echo "Secret mini-vllm: redis-$user-password has fewer than 16 characters; make one: openssl rand -hex 24" >&2
    exit 1
  fi
  hash=$(sha256sum < "$password" | cut -d ' ' -f 1)
  sed -E "/^user $user /{ s/ [>#][^ ]+//g; s/^user $user /&#$hash / }" "$ACL" > "$ACL.new"
  mv "$ACL.new" "$ACL"
  if [ "$(grep -c "^user $user #$hash " "$ACL")" != 1 ]; then
    echo "there must be one user $user in the ACL files" >&2
    exit 1
  fi
done
if grep -q ' >' "$ACL"; then
  echo "the ACL files have a user whose password is not in the Secret" >&2
  exit 1
fi
