# Takes the floor off again, so that the next round starts from an untouched host.
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
systemctl stop slurmd slurmctld slurmdbd munge
if [ -d /var/lib/mysql/slurm_acct_db ]; then
  systemctl start mariadb
  mariadb -e "DROP USER IF EXISTS slurm@localhost; DROP DATABASE IF EXISTS slurm_acct_db"
fi
systemctl stop mariadb
systemctl reset-failed 2>/dev/null
rm -rf /etc/slurm/slurm.conf /etc/slurm/slurmdbd.conf /etc/slurm/cgroup.conf /etc/munge/munge.key
rm -rf /var/lib/slurm/slurmctld/* /var/lib/slurm/slurmd/* /var/log/slurm/*
printf '%s\n' '# Additional options that are passed to the slurmd daemon' '#SLURMD_OPTIONS=""' >/etc/default/slurmd
userdel -r floor 2>/dev/null
ip -4 route show table local | grep '^local' | while read -r route; do
  ip -4 route change ${route%% quickack*} table local; done
if [ -f /root/floor-packages.before ]; then # the packages came with the floor
  now=$(dpkg-query -W -f='${Package} ${db:Status-Abbrev}\n' | awk '$2 ~ /^i/ {print $1}' | sort -u)
  comm -13 /root/floor-packages.before <(echo "$now") | DEBIAN_FRONTEND=noninteractive xargs -r dpkg --purge >/dev/null
  rm -rf /var/lib/mysql /var/log/mysql /root/floor-packages.before
  systemctl daemon-reload
fi
exit 0
