# What the scripts of foreign programs share; each reads this file with its first argument still in place:
#
#   NAME.sh FOLDER [ARGUMENT...]  FOLDER keeps what was downloaded and built, and has the product in FOLDER/prefix
#
# With LANDECK_TEST_HOSTS=2 in the environment the jobs run over two hosts, which are namespaces of this computer; their
# programs find them as an allocation's hosts, and each other by ssh. It needs root and openssh-server. With
# LANDECK_TEST_MACHINE=1 as well the jobs run in one machine of these hosts that stays.
#
# It gives: client (NAME), own (the folder of the scripts), folder, prefix, log (of the last command), landeck.
client=$(basename -- "$0" .sh)
own=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
folder=$(CDPATH= cd -- "$1" && pwd)
prefix=$folder/prefix
log=$folder/$client.log
landeck=$prefix/bin/landeck
[ -x "$prefix/bin/mpicc_abi" ] || {
    echo "$client: no installation in $prefix; cargo xtask $client makes it" >&2
    exit 1
}

# cannot TEXT: ends the script where the program cannot be had or built.
cannot() {
    tail -n 5 "$log" 2>/dev/null || true
    echo "$client: $*"
    exit 77
}

# over_hosts ARGUMENT...: where jobs are to run over several hosts, this runs the script again on the first of them,
# with these arguments. Everything is downloaded by then: the hosts have no other network.
over_hosts() {
    if [ -n "${LANDECK_ON_HOSTS:-}" ]; then
        in_machine
        return
    fi
    hosts=${LANDECK_TEST_HOSTS:-1}
    [ "$hosts" -gt 1 ] || return 0
    PBS_NODEFILE=$folder/$client.hosts LANDECK_ON_HOSTS=$hosts
    export PBS_NODEFILE LANDECK_ON_HOSTS
    seq -f 'n%g' "$hosts" >"$PBS_NODEFILE"
    unset LANDECK_TEST_HOSTS
    # shellcheck disable=SC2086 # a command with its arguments
    exec ${LANDECK_XTASK:-cargo xtask} hosts "$hosts" --ssh -- sh "$own/$client.sh" "$folder" "$@"
}

# in_machine: starts a machine of the hosts for all jobs that follow, if that is wanted. Each job has processes on all of them.
in_machine() {
    [ -n "${LANDECK_TEST_MACHINE:-}" ] || return 0
    # shellcheck disable=SC2046 # the names of hosts
    "$landeck" vm start --name clients $(sed 1d "$PBS_NODEFILE")
    # shellcheck disable=SC2064 # the command as it is now
    trap "'$landeck' vm stop --now --machine clients" EXIT
    unset PBS_NODEFILE
    everywhere=$folder/landeck-everywhere
    cat >"$everywhere" <<END
#!/bin/sh
[ "\$1" != run ] || { shift; set -- run --map-by node "\$@"; }
exec "$landeck" "\$@"
END
    chmod +x "$everywhere"
    landeck=$everywhere
}

# The lines of NAME-left-out.txt without their reasons.
left_out() {
    sed -e 's/ *#.*//' -e '/^$/d' "$own/$client-left-out.txt"
}

# python_environment FOLDER: a Python of its own, where it is not there yet.
python_environment() {
    [ -x "$1/bin/pip" ] || python3 -m venv "$1" >"$log" 2>&1 || cannot "python3 -m venv does not work here"
}

# source_package NAME VERSION PIP: unpacks a source package of Python's index, unmodified.
source_package() {
    "$3" download --no-deps --no-binary "$1" --no-build-isolation -d "$folder" "$1==$2" >"$log" 2>&1 ||
        "$3" download --no-deps --no-binary "$1" -d "$folder" "$1==$2" >>"$log" 2>&1 ||
        cannot "its source package could not be downloaded; $log says why"
    tar -xzf "$folder/$1-$2.tar.gz" -C "$folder"
}
