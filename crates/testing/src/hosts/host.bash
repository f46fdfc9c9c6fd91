# The first process of a host: its mounts and its network, then the service of landeck-rsh.
#
# It is process 1 of the host's process namespace: when it ends, all processes of the host do. bash reaps the orphans.
set -eu
number=$1 name=n$1
# One for each cable, in the order of eth0, eth1 and so on.
networks=("${@:2}")
shared=/run/shared own=/run/shared/n$1 kept=/run/kept

# The maker's /proc is still mounted, so this is the number by which the maker knows this process.
read -r pid _ </proc/self/stat
echo "born $pid"
read -r _

# ---- files ---------------------------------------------------------------------------------------------------------

mount -t proc proc /proc
hostname "$name"
mkdir "$own/run"
mount -t tmpfs -o mode=755 run "$own/run"
mkdir -m 755 "$own/run/hosts" "$own/run/lock" "$own/run/sshd"
mkdir -m 700 "$own/run/home" "$own/run/home/.ssh"
mount --bind $shared "$own/run/hosts"
mount --bind $shared/etc/hosts /etc/hosts
mount --bind $shared/etc/passwd /etc/passwd
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs -o mode=1777 vartmp /var/tmp
mount -t tmpfs -o mode=1777 shm /dev/shm
# The interfaces in /sys are those of the network namespace in which it was mounted. Some kernels refuse that.
mkdir "$own/run/sys"
if mount --rbind /sys "$own/run/sys" && mount -t sysfs sysfs /sys; then
    mount --rbind "$own/run/sys/fs/cgroup" /sys/fs/cgroup || true
fi 2>/dev/null
umount -l "$own/run/sys" 2>/dev/null || true
rmdir "$own/run/sys" 2>/dev/null || true
# What the host sees of this computer in folders of its own.
place() { path=${path/#\/run\//$own/run/}; }
place_number=0
while IFS= read -r -d '' path; do
    place
    if [ -d $kept/$place_number ]; then mkdir -p "$path"; else mkdir -p "${path%/*}" && : >"$path"; fi
    mount --rbind $kept/$place_number "$path"
    place_number=$((place_number + 1))
done <$kept/paths
while IFS= read -r -d '' path && IFS= read -r -d '' target; do
    place
    mkdir -p "${path%/*}"
    [ -L "$path" ] || ln -s -- "$target" "$path"
done <$kept/links
mount --rbind "$own/run" /run
shared=/run/hosts own=/run/hosts/$name

# ---- network -------------------------------------------------------------------------------------------------------

[[ $FAMILIES == *6* ]] || for scope in all default; do
    echo 1 >/proc/sys/net/ipv6/conf/$scope/disable_ipv6
done 2>/dev/null || true
# A host passes on nothing between its networks. A new namespace may have the setting of this computer.
for setting in /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding; do
    [ ! -e $setting ] || [ "$(<$setting)" = 0 ] || echo 0 >$setting
done
{
    echo "link set lo up"
    for cable in "${!networks[@]}"; do
        echo "link set eth$cable up"
        for family in $FAMILIES; do
            if [ "$family" = 4 ]; then
                echo "address add 10.77.${networks[cable]}.$number/24 dev eth$cable"
            else
                printf 'address add fd77:0:0:%x::%x/64 dev eth%d nodad\n' "${networks[cable]}" "$number" "$cable"
            fi
        done
    done
    [ "$APART" = yes ] || for family in $FAMILIES; do
        if [ "$family" = 4 ]; then
            echo "route add default via 10.77.${networks[0]}.254"
        else
            printf 'route add default via fd77:0:0:%x::ffff\n' "${networks[0]}"
        fi
    done
} | ip -batch -
[ -z "$RATE" ] || for cable in "${!networks[@]}"; do
    tc qdisc add dev "eth$cable" root tbf rate "$RATE" burst 128kb latency 50ms
done
if [ "$DROP" != 0 ]; then
    # DROP is in hundredths of a percent.
    nft -f - <<END
table inet landeck {
    chain loss {
        type filter hook input priority 0;
        iifname "eth*" numgen random mod 10000 < $DROP drop
    }
}
END
fi

# ---- services ------------------------------------------------------------------------------------------------------

export HOME=/run/home USER=root LOGNAME=root SHELL=/bin/bash PATH="$PATH_INSIDE" HOSTNAME="$name"
unset OLDPWD TMPDIR XDG_RUNTIME_DIR
cd "$HOME"
log=$own/log

# wait_for SECONDS FILE
wait_for() {
    local tries=0
    until [ -s "$2" ]; do
        tries=$((tries + 1))
        [ $tries -lt $(($1 * 50)) ] || { echo "$2 does not appear: $(tail -n 3 "$log")" && exit 1; }
        sleep 0.02
    done
}

if [ "$SSH" = yes ]; then
    mount --bind $shared/etc/shadow /etc/shadow
    cp $shared/ssh/client /run/home/.ssh/config
    sshd=$(command -v sshd)
    env -i PATH="$PATH" "$sshd" -f $shared/ssh/server -E "$log" </dev/null >>"$log" 2>&1
    wait_for 10 /run/sshd.pid
fi

if [ "$SLURM" = yes ]; then
    mkdir -m 755 /run/munge /run/slurm
    cp -p $shared/slurm/key /run/munge/key
    munged --key-file=/run/munge/key --socket=/run/munge/munge.socket.2 --pid-file=/run/munge/pid \
        --log-file=/run/munge/log --seed-file=/run/munge/seed </dev/null >>"$log" 2>&1
    [ "$number" != 1 ] || slurmctld -D </dev/null >>"$log" 2>&1 &
    slurmd -D -N "$name" </dev/null >>"$log" 2>&1 &
fi

mkfifo "$own/door"
exec 3<>"$own/door"
echo ready
exec </dev/null >>"$log" 2>&1
set +e

session='setsid --wait'
[ "$ONE_SESSION" = no ] || session=

# serve TALK: runs the command of a caller of landeck-rsh, with the environment that sshd would give.
serve() {
    local talk=$shared/talks/$1
    exec 3>&- 8>"$talk/end" <"$talk/in" >"$talk/out" 2>"$talk/err"
    $session env -i HOME="$HOME" USER=root LOGNAME=root SHELL="$SHELL" PATH="$PATH" \
        ${SLURM_CONF:+SLURM_CONF="$SLURM_CONF"} "$SHELL" -c "$(<"$talk/command")" 8>&-
    echo $? >&8
}

while :; do
    if read -r talk <&3; then serve "$talk" & fi
done
