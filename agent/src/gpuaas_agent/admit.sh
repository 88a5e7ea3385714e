# Written by gpuaas-agent: changes are overwritten.
# sshd asks here, before it looks at the signature: which principals may log in as $1 with the certificate whose key id is
# $2 (operation/epoch, or person/1: put there and signed by the platform) and whose serial is $3? Printing nothing refuses it.
# It runs for every login: everything but the first sight of an epoch is done inside this shell.
PATH=/usr/bin:/bin
user=$1 operation=${2%/*} epoch=${2##*/} serial=$3
case $user in '' | *[!a-z0-9_-]*) exit 0 ;; esac
case $operation in '' | *[!A-Za-z0-9_]*) exit 0 ;; esac
case $epoch in '' | *[!0-9]* | ????????????????*) exit 0 ;; esac
case $serial in '' | *[!0-9]*) exit 0 ;; esac

# The fence: one empty file per epoch seen, on disk before a login is admitted. They are only ever added, so two logins
# at once cannot lower each other's. A disk that takes no file must not lock the holder out: what is there still counts.
if [ ! -e "@EPOCHS@/$operation.$epoch" ]; then
  { mkdir -p "@EPOCHS@" && true >"@EPOCHS@/$operation.$epoch" && sync "@EPOCHS@/$operation.$epoch" "@EPOCHS@"; } 2>/dev/null
fi
for seen in "@EPOCHS@/$operation."*; do
  [ "${seen##*.}" -gt "$epoch" ] 2>/dev/null && exit 0
done

# The session that may come of this is sshd's process, our parent: noted with its start, so that exactly it can be ended.
if read -r stat <"/proc/$PPID/stat"; then
  set -- ${stat##*) }
  { [ -d "@SESSIONS@" ] || mkdir -p "@SESSIONS@"; } 2>/dev/null
  { true >"@SESSIONS@/$PPID.${20}.$serial"; } 2>/dev/null
fi

# After the note, not before: the agent writes this list first and looks for notes then, so one of us sees the other.
if [ -r "@SSH@/revoked_serials" ]; then
  while read -r revoked; do
    [ "$revoked" = "$serial" ] && exit 0
  done <"@SSH@/revoked_serials"
fi

[ -r "@SSH@/principals/$user" ] || exit 0
while read -r principal; do
  echo "$principal"
done <"@SSH@/principals/$user"

# People get in by principals of their own, and whatever they ask for, enter.sh is what runs.
[ "$user" = root ] && [ -r "@SSH@/people" ] || exit 0
while read -r principal; do
  echo "restrict,pty,command=\"/usr/bin/sh @SSH@/enter.sh $serial\" $principal"
done <"@SSH@/people"
