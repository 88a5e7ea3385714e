# A host without packages: the set comes on standard input; the host's own apt puts them in order (a plain `dpkg -i` of
# all of them fails half way: some want others configured first).
set -eu
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
dpkg-query -W -f='${Package} ${db:Status-Abbrev}\n' | awk '$2 ~ /^i/ {print $1}' | sort -u >/root/floor-packages.before
repo=$(mktemp -d /root/floor.XXXX) && mkdir -p "$repo/lists/partial" "$repo/cache/archives/partial"
tar -x -C "$repo" -f -
echo "deb [trusted=yes] file:$repo ./" >"$repo/sources.list"
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod 0755 /usr/sbin/policy-rc.d
apt="apt-get -q -o Dir::Etc::sourcelist=$repo/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$repo/lists"
apt="$apt -o Dir::Cache=$repo/cache -o APT::Sandbox::User=root -o APT::Install-Recommends=false"
$apt update >/dev/null
$apt -y install munge slurmctld slurmd slurmdbd slurm-client mariadb-server >/dev/null
rm -rf /usr/sbin/policy-rc.d "$repo"
