# The first process of a cluster: the network between the hosts, and the start of each host.
#
# It is process 1 of a process namespace, in which all hosts are. When it ends, the kernel kills every process of every
# host, and their namespaces and mounts go with them. It ends when its standard input ends, thus with the maker.
#
# Standard input: texts that end in a zero byte each, then lines "boot NUMBER". The texts are paths of this computer that
# hosts see as well; an empty one; links, each before what it contains; an empty one; the files.
# Standard output: "cluster PID", "host NUMBER PID" for a host that is ready, "fail TEXT", "gone NUMBER".
set -u
umask 022
shared=/run/shared
# What hosts see of this computer: places by their numbers, the list of their paths, and links to them.
kept=/run/kept

fail() {
    echo "fail ${*//$'\n'/; }"
    exit 1
}

# must COMMAND...: runs it; its message becomes ours.
must() {
    local said
    said=$("$@" 2>&1) || fail "$*: $said"
}

site_of() { echo $((($1 - 1) * SITES / HOSTS + 1)); }

# The networks of a host, in the order of its cables: that of its site, and those of its further cables. CABLES has words
# NUMBER:NETWORK.
networks_of() {
    local cable networks
    networks=$(site_of "$1")
    for cable in $CABLES; do
        [ "${cable%:*}" != "$1" ] || networks+=" ${cable#*:}"
    done
    echo "$networks"
}

# The address of a host in a family, 4 or 6.
address() {
    local site
    site=$(site_of "$2")
    if [ "$1" = 4 ]; then echo "10.77.$site.$2"; else printf 'fd77:0:0:%x::%x\n' "$site" "$2"; fi
}

# The maker's /proc is still mounted, so this is the number by which the maker knows this process.
read -r pid _ </proc/self/stat
echo "cluster $pid"

# Hosts have folders of their own in place of /tmp, /var/tmp, /run and /dev/shm. What they see there of this computer is held open
# while its path is hidden, and stays in a folder from which each host takes it.
paths=() files=() links=()
while IFS= read -r -d '' path && [ -n "$path" ]; do
    { exec {file}<"$path"; } 2>/dev/null || continue # what this user cannot read
    paths+=("$path") files+=("$file")
done
while IFS= read -r -d '' link && [ -n "$link" ]; do
    IFS= read -r -d '' path && links+=("$link" "$path")
done
must mount -t tmpfs -o mode=755 landeck-hosts /run
must mkdir -p $shared/bin $shared/etc $shared/talks $kept
for number in "${!paths[@]}"; do
    file=${files[number]}
    if [ -d "/proc/self/fd/$file" ]; then must mkdir $kept/$number; else : >$kept/$number; fi
    must mount --no-canonicalize --rbind "/proc/self/fd/$file" $kept/$number
    exec {file}<&-
done
write_texts() { [ $# = 0 ] || printf '%s\0' "$@"; }
write_texts "${paths[@]}" >$kept/paths
write_texts "${links[@]}" >$kept/links
for file in host bin/landeck-rsh bin/landeck-cut bin/landeck-join; do
    IFS= read -r -d '' text || fail "the maker is gone"
    printf '%s' "$text" >"$shared/$file"
done
chmod 755 $shared/bin/*

# ---- names ---------------------------------------------------------------------------------------------------------

{
    echo "127.0.0.1 localhost"
    [[ $FAMILIES != *6* ]] || echo "::1 localhost"
    for ((number = 1; number <= HOSTS; number++)); do
        for family in $FAMILIES; do echo "$(address "$family" $number) n$number"; done
    done
} >$shared/etc/hosts
# ssh and shells take the home directory from here.
sed -E 's,^([^:]*:[^:]*:0:[^:]*:[^:]*):[^:]*:,\1:/run/home:,' /etc/passwd >$shared/etc/passwd

# ---- the network: a bridge for each site; this namespace is the router between them, unless they are apart --------

quiet_ipv6() {
    [[ $FAMILIES == *6* ]] && return
    for scope in all default; do
        echo 1 >/proc/sys/net/ipv6/conf/$scope/disable_ipv6
    done 2>/dev/null
}
quiet_ipv6
must ip link set lo up
# Network 0 is the middle, which further cables alone lead to.
first_network=1
[ "$APART" = no ] || first_network=0
for ((site = first_network; site <= SITES; site++)); do
    must ip link add "site$site" ${MTU:+mtu $MTU} type bridge forward_delay 0
    must ip link set "site$site" up
    # No host has a router where sites are apart.
    [ "$APART" = no ] || continue
    for family in $FAMILIES; do
        if [ "$family" = 4 ]; then
            must ip address add "10.77.$site.254/24" dev "site$site"
        else
            must ip address add "$(printf 'fd77:0:0:%x::ffff/64' "$site")" dev "site$site" nodad
        fi
    done
done
if [ "$SITES" -gt 1 ] && [ "$APART" = no ]; then
    # A /proc of our own can be written where that of a container cannot.
    must unshare --mount sh -c 'mount -t proc proc /proc
        for family in '"$FAMILIES"'; do
            case $family in
                4) echo 1 >/proc/sys/net/ipv4/ip_forward ;;
                6) echo 1 >/proc/sys/net/ipv6/conf/all/forwarding ;;
            esac
        done'
fi

# ---- ssh and Slurm: what all hosts share ---------------------------------------------------------------------------

if [ "$SSH" = yes ]; then
    must mkdir -m 700 $shared/ssh
    for key in host user; do must ssh-keygen -q -t ed25519 -N '' -C landeck-hosts -f "$shared/ssh/$key"; done
    # An account without a password is locked for sshd where its entry begins with "!".
    echo 'root:*:19000:0:99999:7:::' >$shared/etc/shadow
    chmod 600 $shared/etc/shadow
    cat >$shared/ssh/server <<END
Port 22
HostKey /run/hosts/ssh/host
AuthorizedKeysFile /run/hosts/ssh/user.pub
PidFile /run/sshd.pid
PermitRootLogin yes
PasswordAuthentication no
StrictModes no
UsePAM no
UseDNS no
PrintMotd no
PrintLastLog no
MaxStartups 256
MaxSessions 256
SetEnv PATH=$PATH_INSIDE${SLURM_CONF:+ SLURM_CONF=$SLURM_CONF}
END
    cat >$shared/ssh/client <<END
Host *
    User root
    IdentityFile /run/hosts/ssh/user
    IdentitiesOnly yes
    BatchMode yes
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    GlobalKnownHostsFile /dev/null
    LogLevel ERROR
END
fi

if [ "$SLURM" = yes ]; then
    must mkdir -p $shared/slurm/state
    dd if=/dev/urandom of=$shared/slurm/key bs=128 count=1 status=none
    chmod 600 $shared/slurm/key
    cat >$shared/slurm/slurm.conf <<END
ClusterName=landeck
SlurmctldHost=n1
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
StateSaveLocation=/run/hosts/slurm/state
SlurmdSpoolDir=/run/slurm
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/run/hosts/slurm/slurmctld.log
SlurmdLogFile=/run/hosts/slurm/slurmd.%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SlurmdParameters=config_overrides
NodeName=n[1-$HOSTS] CPUs=8 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
END
fi

# ---- hosts ---------------------------------------------------------------------------------------------------------

# boot NUMBER: starts a host, says when it is ready, and stays until it has ended.
boot() {
    local number=$1 folder=$shared/n$1 networks cable outer hardware pid up word
    read -ra networks < <(networks_of "$number")
    local said=()
    rm -rf "$folder"
    mkdir -p "$folder"
    mkfifo "$folder/go"
    exec 5<>"$folder/go"
    exec 4< <(exec unshare --net --uts --ipc --mount --pid --fork --kill-child \
        bash $shared/host "$number" "${networks[@]}" <"$folder/go" 2>&1 5>&-)
    up=$!
    while read -r word pid <&4; do
        case $word in
            born)
                for cable in "${!networks[@]}"; do
                    outer=host$number-eth$cable
                    # A host keeps its hardware addresses in all its lives: its neighbours still know them.
                    hardware=$(printf '02:00:00:00:%02x:%02x' "${networks[cable]}" "$number")
                    # The cable of this host's last life may still be there.
                    ip link delete "$outer" 2>/dev/null
                    must ip link add "$outer" ${MTU:+mtu $MTU} type veth \
                        peer name "eth$cable" address "$hardware" ${MTU:+mtu $MTU} netns $up
                    must ip link set "$outer" master "site${networks[cable]}" up
                    [ -z "$RATE" ] || must tc qdisc add dev "$outer" root tbf rate "$RATE" $PORT
                done
                born=$pid
                echo go >&5
                ;;
            ready)
                echo "host $number $born"
                exec 4<&- 5>&-
                wait $up
                rm -f "$folder/door"
                echo "gone $number"
                return
                ;;
            *) said+=("$word $pid") ;;
        esac
    done
    fail "n$number does not start: ${said[*]-}"
}

# set_cables up|down HOST[/CABLE]: sets one cable of a host, or all.
set_cables() {
    local verb=$1 host=${2%%/*} cables cable
    cables=($(networks_of "${host#n}"))
    cables=("${!cables[@]}")
    if [[ $2 == */* ]]; then
        cable=${2#*/eth}
        if [[ " ${cables[*]} " != *" $cable "* ]]; then
            echo "there is no such cable. The host has: ${cables[*]/#/eth}"
            return
        fi
        cables=("$cable")
    fi
    for cable in "${cables[@]}"; do ip link set "host${host#n}-eth$cable" "$verb"; done
}

# Cables are pulled and put in again for the processes of hosts.
serve_control() {
    local verb which talk
    mkfifo $shared/control
    exec 6<>$shared/control
    while read -r verb which talk <&6; do
        set_cables "$verb" "$which" >"$shared/talks/$talk" 2>&1
        echo done >"$shared/talks/$talk.done"
    done
}

serve_control </dev/null >/dev/null 2>&1 &
while read -r verb number; do
    [ "$verb" != boot ] || boot "$number" </dev/null &
done
