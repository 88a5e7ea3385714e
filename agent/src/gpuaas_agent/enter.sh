# Written by gpuaas-agent: changes are overwritten.
# sshd runs this as root, in place of whatever a person asked for (admit.sh puts it before every person's principal): it
# hands them over to a user of their own, who may change nothing here and ends with the session. $1: the certificate's
# serial. The user's number comes from it, so that exactly this certificate's processes can be found and ended: here
# when the session is over or sshd is gone, and by the agent (sessions.py) when the certificate is revoked.
PATH=/usr/bin:/bin
umask 022
case $1 in '' | *[!0-9]* | ????????????????????*) exit 1 ;; esac
if [ "$2" != inside ]; then # files in world-writable folders are deleted with the session
  exec setpriv --pdeathsig TERM unshare --mount --ipc -- sh "$0" "$1" inside
fi

user=$((@FIRST_USER@ + $1 % @USERS@))
for place in /tmp /var/tmp /dev/shm; do
  mount -t tmpfs -o mode=1777,nosuid,nodev,size=64m gpuaas "$place" || exit 1
done
mkdir -m 0700 /tmp/home && chown "$user:$user" /tmp/home || exit 1
{ cat /etc/passwd && echo "person:x:$user:$user:GPUaaS $1:/tmp/home:/bin/bash"; } >/tmp/.passwd &&
  mount --bind /tmp/.passwd /etc/passwd && cd /tmp/home || exit 1
echo 500 >/proc/self/oom_score_adj # short of memory, a session goes before what the machine is for
as_person="setpriv --reuid $user --regid $user --clear-groups --no-new-privs"

over() {
  trap '' TERM HUP
  $as_person sh -c 'kill -s KILL -- -1' # all of this user's processes at once, wherever they hide
  exit "$1"
}
trap 'over 143' TERM HUP
trap : INT QUIT

set -- /bin/bash --login
[ -z "${SSH_ORIGINAL_COMMAND+x}" ] || set -- /bin/bash -c "$SSH_ORIGINAL_COMMAND"
exec 3<&0 # a shell gives what it starts in the background no input, and has it ignore Ctrl-C: both are given back
timeout --foreground --signal=HUP --kill-after=5 @LASTS_S@ \
  prlimit --nproc=512 --core=0 \
  $as_person --inh-caps=-all --ambient-caps=-all --bounding-set=-all \
  env -i --default-signal=INT,QUIT HOME=/tmp/home USER=person LOGNAME=person SHELL=/bin/bash \
  PATH=/usr/local/bin:/usr/bin:/bin TERM="${TERM:-dumb}" LANG="${LANG:-C.UTF-8}" "$@" <&3 3<&- &
child=$!
exec 3<&- <&-
while :; do
  wait "$child"
  ended=$?
  kill -0 "$child" 2>/dev/null || over "$ended" # otherwise it was Ctrl-C, which is not for us
done
