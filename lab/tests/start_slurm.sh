# Runs inside a host: the shortest way to all five daemons and one GPU job. Proves the host, not the Slurm app.
set -euo pipefail
trap 'systemctl status --no-pager --lines=5 munge mariadb slurmdbd slurmctld slurmd >&2; tail -v -n 5 /var/log/slurm/*.log >&2' ERR
until_ok() { for _ in $(seq 100); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; "$@"; }

install -o munge -m 400 <(head -c 1024 /dev/urandom) /etc/munge/munge.key
systemctl start munge mariadb
mysql -e "create database slurm_acct_db; create user slurm@localhost identified by 'lab'; grant all on slurm_acct_db.* to slurm@localhost"
install -o slurm -m 600 /dev/stdin /etc/slurm/slurmdbd.conf <<END
AuthType=auth/munge
DbdHost=$HOSTNAME
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageUser=slurm
StoragePass=lab
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/run/slurmdbd.pid
END
cat > /etc/slurm/slurm.conf <<END
ClusterName=lab
SlurmctldHost=$HOSTNAME
SlurmUser=slurm
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=$HOSTNAME
GresTypes=gpu
MaxNodeCount=4
PartitionName=main Nodes=ALL Default=YES
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
END
echo 'Name=gpu Type=a100 File=/dev/nvidia[0-1] Flags=nvidia_gpu_env' > /etc/slurm/gres.conf
echo "SLURMD_OPTIONS='-Z --conf Gres=gpu:a100:2'" > /etc/default/slurmd
systemctl start slurmdbd
until_ok sacctmgr -i list cluster
sacctmgr -i add cluster lab
systemctl start slurmctld
until_ok scontrol ping
systemctl start slurmd
until_ok bash -c 'sinfo -hN -o %T | grep -qx idle'
systemctl is-active munge mariadb slurmdbd slurmctld slurmd
sinfo -hN -o '%N %T'
srun --gres=gpu:1 env | grep '^CUDA_VISIBLE_DEVICES='
