# Sent before every command that runs on a host. host.py sets BASE, RUN, INSTANCE, SCOPE, OPERATION, EPOCH, STEP, UNIT,
# WITHIN, and of the app: APP_UNITS (services), APP_LOGS (log files by service), APP_DISKS (paths to check for space).
# Uses bash builtins where possible: a process costs a millisecond or two, and there may be many hosts on two cores.
# Exit codes: 75 = a newer claim controls the host; 74 = the host's lock stayed taken; anything else = the step failed.
set -u
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
OWN=$BASE/$INSTANCE
REPORT=$OWN/report/${SCOPE:+$SCOPE/}$OPERATION

now_ms() { local t=${EPOCHREALTIME/./}; echo "${t%???}"; }
say() { printf '@%s %s\n' "$1" "$2"; }
refuse() { say fail "$1|$2"; exit 1; }
# A process listens on the port. Read from the kernel: daemons log an error for a connection without data.
port_open() {
  local port file lines line
  printf -v port %04X "$1"
  for file in /proc/net/tcp /proc/net/tcp6; do
    [ -r $file ] && mapfile -t lines <$file || continue
    for line in "${lines[@]}"; do [[ $line == *:"$port "*([0:])" 0A "* ]] && return; done
  done
  return 1
}
# `is-active` reads one property; `show` gathers all of them, which costs four times as much.
active() { systemctl -q is-active "$1.service" 2>/dev/null; }
# off UNIT...: neither running nor starting; a service that a killed command has just started is not active yet, nor off.
off() {
  local states one
  mapfile -t states < <(systemctl is-active "${@/%/.service}" 2>/dev/null)
  [ ${#states[@]} -eq $# ] || return 1
  for one in "${states[@]}"; do
    case $one in inactive | failed | unknown) ;; *) return 1 ;; esac
  done
}
# systemd refuses to start a service that failed too often, until its counter is reset.
restart() {
  systemctl restart "$1.service" || {
    [ "$(systemctl show -P Result "$1.service")" = start-limit-hit ] || return 1
    systemctl reset-failed "$1.service" && systemctl restart "$1.service"
  }
}

# wait_until SECONDS COMMAND...: tries every 20 ms, on the host, so that waiting costs no round trips.
wait_until() {
  local end=$((${EPOCHREALTIME/./} + $1 * 1000000))
  shift
  until "$@"; do
    [ ${EPOCHREALTIME/./} -lt $end ] || return 1
    sleep 0.02
  done
}

# The fence. A claim is (operation, epoch); operation ids are ordered by time. An act holds the lock shared, a claim
# that takes over holds it alone, so it waits for the last act of the former claim. A bare number in the file counts too.
# SCOPE empty: the operation works on the whole instance. Else it works on one member, beside operations on others: it
# has its own file and lock, is rejected after a newer operation on the whole, and rejects older ones (`floor`).
CHARGE=$INSTANCE${SCOPE:+.$SCOPE}
older_than() {
  local epoch=0 operation=
  [ -r "$1" ] && read -r epoch operation <"$1"
  if [ -z "${operation:-}" ] || [ "$operation" = "$OPERATION" ]; then [ "$EPOCH" -lt "${epoch:-0}" ]; else [[ "$OPERATION" < "$operation" ]]; fi
}
in_charge() {
  local claim=
  read -r claim 2>/dev/null <"$OWN/epoch${SCOPE:+.$SCOPE}"
  [ "$claim" = "$EPOCH $OPERATION" ]
}
stale() {
  local f
  for f in epoch ${SCOPE:+epoch.$SCOPE}; do older_than "$OWN/$f" && return; done
  for f in $INSTANCE $CHARGE; do older_than "$RUN/$f.epoch" && return; done
  [ -z "$SCOPE" ] && older_than "$OWN/floor"
}
keep() { printf '%s %s\n' "$EPOCH" "$OPERATION" >"$1.new.$$" && mv "$1.new.$$" "$1"; }
write_epoch() {
  [ -d "$OWN" ] || mkdir -p -m 0700 "$BASE" "$OWN" || return 1
  keep "$OWN/epoch${SCOPE:+.$SCOPE}" && keep "$RUN/$CHARGE.epoch" || return 1
  [ -z "$SCOPE" ] || older_than "$OWN/floor" || keep "$OWN/floor"
}
# To change the kind of a lock, the kernel releases the held one first: two claims that take over never deadlock.
fence() {
  [ -d "$RUN" ] || mkdir -p "$RUN"
  exec 9>"$RUN/$CHARGE.lock"
  if [ -n "$SCOPE" ]; then exec 8>"$RUN/$INSTANCE.lock" && flock -s -w 60 8 || exit 74; fi
  ! in_charge || flock -s -w 60 9 || exit 74
  while ! in_charge; do
    if stale; then say stale "$(cat "$OWN/epoch" "$OWN/floor" "$RUN/$INSTANCE.epoch" 2>/dev/null | head -1)"; exit 75; fi
    flock -x -w 60 9 || exit 74
    if ! stale && ! in_charge; then write_epoch || return 1; fi
    flock -s -w 60 9 || exit 74
  done
  ! stale || { say stale "$(cat "$RUN/$INSTANCE.epoch" "$RUN/$CHARGE.epoch" 2>/dev/null | head -1)"; exit 75; }
}

# alone: waits until no act runs on this host, not even one of this claim whose connection broke. Held until the end.
alone() { flock -x -w 60 9 || exit 74; }

# Marks of claims matter while a late command can arrive: a certificate lives five minutes, a command not much longer.
delete_old_marks() { find "$RUN" -type f -mmin +60 -delete; }

journal() {
  local now=$EPOCHREALTIME at
  TZ=UTC0 printf -v at '%(%FT%T)T' "${now%.*}"
  now=${now#*.}
  printf '{"operation":"%s","epoch":%s,"step":"%s","at":"%s.%sZ"}\n' \
    "$OPERATION" "$EPOCH" "$STEP" "$at" "${now:0:3}" >>"$BASE/journal.jsonl"
}

# What an engineer needs when a step fails: the last log lines of the service, and file systems without space.
diagnose() {
  exec >&5 2>&1
  [ -s "$OUT" ] && tail -c 3000 "$OUT"
  if [ -n "$UNIT" ]; then
    systemctl show -p ActiveState,SubState,Result "$UNIT.service" 2>/dev/null | sed 's/^/@log /'
    journalctl -q -o cat -u "$UNIT.service" -n 15 --no-pager 2>/dev/null | sed 's/^/@log /'
    [ -n "${APP_LOGS[$UNIT]-}" ] && tail -n 10 "${APP_LOGS[$UNIT]}" 2>/dev/null | sed 's/^/@log /'
  fi
  [ ${#APP_UNITS[@]} -eq 0 ] ||
    systemctl show -p Id -p ActiveState -p SubState -p Result -p NRestarts "${APP_UNITS[@]/%/.service}" 2>/dev/null |
    awk -F= '{v[$1]=$2} /^$/ {row()} END {row()}
      function row() { if (v["Id"] != "") print "@unit_state " v["Id"] "|" v["ActiveState"] "|" v["SubState"] "|" v["Result"] "|" v["NRestarts"]; delete v }'
  tail -n 8 "$BASE/journal.jsonl" 2>/dev/null | sed 's/^/@act /'
  df -kP $APP_DISKS 2>/dev/null |
    awk 'NR>1 && $4<1024 && !seen[$6]++ {print "@full " $6 "|" $4}'
}

# A probe may define `why_not`, which prints the reason why the probe does not hold.
unverified() {
  echo "@unverified $STEP"
  ! declare -F why_not >/dev/null || why_not
}

# Output goes to a file until the end, so that a controller that dies cannot break an act with a closed pipe.
begin() {
  exec 5>&1
  [ -d "$RUN" ] || mkdir -p "$RUN"
  OUT=$RUN/$STEP.$$.out
  trap 'code=$?; [ $code -eq 0 ] || diagnose; rm -f "$OUT"' EXIT
  fence || exit 1
  [ -d "$REPORT" ] || mkdir -p "$REPORT" || exit 1
}

# do_act: journal line, act, then probe until it holds.
do_act() {
  journal || exit 1
  (set -euo pipefail; act) >"$OUT" 2>&1  # alone on its line: inside a list or condition, bash would ignore -e
  code=$?
  [ $code -eq 0 ] || exit 1
  wait_until "$WITHIN" probe >/dev/null 2>&1 || { unverified >>"$OUT"; exit 1; }
  local lines
  mapfile -t lines <"$OUT"
  [ ${#lines[@]} -eq 0 ] || printf '%s\n' "${lines[@]}" >&5
}
run_act() { begin; do_act; }

# Several acts in one command. TURNS: each entry names independent steps that run at once; the next turn begins when all
# of them are verified. step_NAME defines the functions probe and act of a step. UNIT_OF, WITHIN_OF: of each step.
# INPUTS: NAME:BYTES of steps that get a part of the standard input, in this order. ASK: skip what is done already.
# The output has a part for each step that was begun: its exit code, its duration in ms, then its own output.
take_in() {
  local one file=$OUT.in mask fd
  mask=$(umask)
  umask 077
  for one in $INPUTS; do  # in a file that is unlinked before the input arrives: no key may be left behind
    exec {fd}<>"$file" && rm "$file" && head -c "${one#*:}" >&$fd || return 1
    INPUT[${one%:*}]=/proc/self/fd/$fd
  done
  umask "$mask"
}
in_turn() {
  STEP=$1 UNIT=${UNIT_OF[$1]-} WITHIN=${WITHIN_OF[$1]} OUT=$OUT.$1
  exec >"$OUT.printed" 2>&1 5>&1
  trap 'code=$?; [ $code -eq 0 ] || diagnose' EXIT
  "step_$1"
  if [ -n "$ASK" ] && probe </dev/null >/dev/null 2>&1; then say held "$1"; exit 0; fi
  do_act
}
run_acts() {
  local turn s code began failed= lines
  local -A INPUT pid
  local -a ended
  begin
  trap 'code=$?; [ $code -eq 0 ] || diagnose; rm -f "$OUT"*' EXIT
  [ -z "$ASK" ] || alone  # the result of a probe stays true
  [ -z "$INPUTS" ] || take_in || exit 1
  for turn in "${TURNS[@]}"; do
    began=${EPOCHREALTIME/./}
    for s in $turn; do (in_turn "$s") <"${INPUT[$s]:-/dev/null}" & pid[$s]=$!; done
    for s in $turn; do
      code=0
      wait "${pid[$s]}" || code=$? failed=yes
      ended+=("$s|$code|$(((${EPOCHREALTIME/./} - began) / 1000))")
    done
    [ -z "$failed" ] || break
  done
  for s in "${ended[@]}"; do
    say step "$s"
    mapfile -t lines <"$OUT.${s%%|*}.printed"
    [ ${#lines[@]} -eq 0 ] || printf '%s\n' "${lines[@]}"
  done
  [ -z "$failed" ] || { trap 'rm -f "$OUT"*' EXIT; exit 1; }
}
