# The floor: only what any script must do to get from untouched hosts to `srun` by an ordinary, accounted user.
# Sent to every host at once, one SSH connection each (floor.py says with which ROLE, ADDRESS, HEAD, NODE, KEY and
# WORKERS). No checks, no clean-up, no second try. Prints `@moment seconds` where a moment counts.
set -eu
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
listens() { grep -qsE ": [0-9A-F]+:$(printf %04X "$1") 0+:0000 0A " /proc/net/tcp; }
opens() { (exec 3<>"/dev/tcp/$ADDRESS/$1") 2>/dev/null; }
quickack() { # on|off: acknowledge at once what this host sends to itself; the product does it too
  ip -4 route show table local | grep '^local' | while read -r route; do
    ip -4 route change ${route%% quickack*} table local $([ "$1" = off ] || echo quickack 1); done; }
gate() { until "$@" >/dev/null 2>&1; do sleep 0.02; done; }
moment() { echo "@$1 $EPOCHREALTIME"; }

base64 -d <<<"$KEY" >/etc/munge/munge.key && chown munge: /etc/munge/munge.key && chmod 0400 /etc/munge/munge.key
cat >/etc/slurm/slurm.conf <<CONF
ClusterName=floor
SlurmctldHost=$HEAD($ADDRESS)
SlurmUser=slurm
AuthType=auth/munge
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
MaxNodeCount=64
TreeWidth=65533
ReturnToService=2
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=$ADDRESS
AccountingStorageEnforce=associations,limits,qos
EnforcePartLimits=ALL
MailProg=/bin/true
PartitionName=main Nodes=ALL Default=YES State=UP
CONF
echo CgroupPlugin=cgroup/v1 >/etc/slurm/cgroup.conf
mkdir -p /var/lib/slurm/slurmctld /var/lib/slurm/slurmd /var/log/slurm && chown slurm /var/lib/slurm/* /var/log/slurm
useradd -m -u 21900 floor &
systemctl start munge &

head_of_cluster() {
  quickack on
  cat >/etc/slurm/slurmdbd.conf <<CONF
DbdHost=localhost
DbdAddr=$ADDRESS
AuthType=auth/munge
SlurmUser=slurm
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
CONF
  chown slurm /etc/slurm/slurmdbd.conf && chmod 0600 /etc/slurm/slurmdbd.conf
  systemctl start mariadb
  mariadb -e "CREATE DATABASE slurm_acct_db; CREATE USER slurm@localhost IDENTIFIED VIA unix_socket;
              GRANT ALL ON slurm_acct_db.* TO slurm@localhost"
  wait
  systemctl start slurmdbd
  gate listens 6819
  systemctl start slurmctld
  gate listens 6817
  sacctmgr -i add account floor >/dev/null
  sacctmgr -i add user floor account=floor >/dev/null
  moment accounting
}
worker() {
  echo "SLURMD_OPTIONS=\"-Z -N $NODE\"" >/etc/default/slurmd
  wait
  gate opens 6817
  systemctl start slurmd
}

case $ROLE in
  head) head_of_cluster ;;
  worker) worker ;;
  both) head_of_cluster && worker ;;
esac
[ "$ROLE" != worker ] || exit 0
until [ "$(sinfo -h -r -t idle -o %D 2>/dev/null)" = "$WORKERS" ]; do sleep 0.02; done
cd /tmp && runuser -u floor -- srun -N "$WORKERS" hostname </dev/null
moment job
