#!/bin/sh
# Simulates ring, butterfly and knomial with Landeck's simulator and with SimGrid's SMPI, on the same
# network (flat.toml, flat.xml), and shows both: members, bytes, ours, SimGrid's, and how much longer ours
# is. Needs `landeck` on the PATH or as the first argument, and smpicc and smpirun (Debian:
# libsimgrid-dev).
set -eu
landeck=$(command -v "${1:-landeck}") || { echo "compare.sh: there is no ${1:-landeck}; give the path of landeck" >&2; exit 1; }
landeck=$(realpath "$landeck")
command -v smpicc >/dev/null || { echo "compare.sh: there is no smpicc; install SimGrid (Debian: libsimgrid-dev)" >&2; exit 1; }
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
smpicc -O1 -o operations "$here/operations.c"
seq -f 'h%g' 0 63 >hosts

# smpi MEMBERS SELECTOR OPERATION SIZES...: LogGP's figures of flat.toml, no guesses of SMPI's own, and
# sends that wait for their receivers, so that a member sends one message after the other.
smpi() {
    members=$1 selector=$2
    shift 2
    smpirun -np "$members" -platform "$here/flat.xml" -hostfile hosts --cfg=network/model:CM02 \
        --cfg=network/TCP-gamma:0 --cfg=network/crosstraffic:0 --cfg=network/latency-factor:1 \
        --cfg=network/bandwidth-factor:1 --cfg=smpi/lat-factor:1 --cfg=smpi/bw-factor:1 \
        --cfg=smpi/os:0:1e-6:0 --cfg=smpi/or:0:1e-6:0 --cfg=smpi/ois:0:1e-6:0 \
        --cfg=smpi/simulate-computation:no --cfg=smpi/send-is-detached-thresh:2048 \
        --cfg="$selector" --log=root.thresh:error ./operations "$@"
}

# compare NAME OPERATION ARCHITECTURE SELECTOR
compare() {
    for members in 4 16 32; do
        for bytes in 1024 65536 1048576; do
            theirs=$(smpi "$members" "$4" "$2" "$bytes" | cut -d' ' -f2)
            ours=$("$landeck" simulate "$2" -a "$3" -n "$members" --sizes "$bytes" \
                --platform "$here/flat.toml" | tr -d ',' | awk -v bytes="$bytes" '$1 == bytes { print $2 }')
            awk -v name="$1" -v n="$members" -v b="$bytes" -v ours="$ours" -v theirs="$theirs" 'BEGIN {
                printf "%-10s %3d %8d %10.1f %10.1f %+6.1f%%\n", name, n, b, ours, theirs, 100 * (ours / theirs - 1) }'
        done
    done
}

echo "           n    bytes       ours    SimGrid"
compare knomial broadcast knomial:nearest-first smpi/bcast:binomial_tree
compare butterfly allreduce butterfly smpi/allreduce:rdb
compare ring allreduce ring+split smpi/allreduce:lr
