#!/bin/sh
# The first parallel program, an unmodified MPI program in C: builds and installs everything below
# target/, compiles examples/c/heat.c with the installed compiler, runs it on 4 processes and on 1,
# and checks that both got the same, bit for bit; the program itself compares with the known solution.
# Where MPICH is installed as a peer of the benchmark (bench/peers.sh mpich), the same binary runs on
# that, too. Called by `make run`; needs cargo and a C compiler on the PATH.
#
# What runs here is built in the profile "first" of Cargo.toml, which costs a third of a release. For use, `make
# install` installs a release.
#
#     SIZE=1024 STEPS=3000 PROCESSES=4 make run
#
# With HOSTS=2 the processes are spread over two hosts made of namespaces on this computer
# (docs/hosts-on-a-laptop.md), and their messages between hosts are encrypted.
set -eu
cd "$(dirname "$0")/.."

size=${SIZE:-1024}
steps=${STEPS:-3000}
processes=${PROCESSES:-4}
hosts=${HOSTS:-1}
results=out
target=${CARGO_TARGET_DIR:-$PWD/target}
installed=$target/installed
mpich=bench-peers/venv-mpich

built=$target/first
steps_done=0
steps_all=6
[ ! -x "$mpich/bin/mpiexec" ] || steps_all=7

say() { printf '\n==> %s\n' "$*"; }

# Says what begins, and how far this is.
step() {
    steps_done=$((steps_done + 1))
    say "$steps_done of $steps_all: $*"
}

# A number with commas between its thousands.
with_commas() { echo "$1" | sed -e :again -e 's/\([0-9]\)\([0-9]\{3\}\)\($\|,\)/\1,\2\3/;tagain'; }

# What a file with the program's output says its time was.
time_of() { sed -n 's/.* cells: \([0-9.]* s\);.*/\1/p' "$1"; }

# The hosts, each with as many slots as it needs: n1:2,n2:2.
host_list() {
    slots=$(((processes + hosts - 1) / hosts))
    seq -f "n%g:$slots" -s , "$hosts"
}

# Runs the program to its end with its last words in a file, too: NAME LAUNCHER...
heat() {
    name=$1
    shift
    "$@" "$installed/heat" "$size" "$steps" "$results/heat-$name.plate" >"$results/heat-$name.txt" || {
        cat "$results/heat-$name.txt"
        exit 1
    }
    cat "$results/heat-$name.txt"
}

# Compares the cells of two plates; the line before them says how many blocks there were.
same() {
    for name in "$1" "$2"; do
        tail -n +2 "$results/heat-$name.plate" >"$results/heat-$name.cells"
    done
    cmp -s "$results/heat-$1.cells" "$results/heat-$2.cells" && echo "The same bits." && return
    echo "The results differ: $results/heat-$1.plate and $results/heat-$2.plate." >&2
    echo "Both runs must give the same cells, bit for bit. Please report this with the two files." >&2
    exit 1
}

step "Compiling Landeck and its libraries; the first time that takes minutes (cargo build --profile first)"
# All in one go, and this selection alone: with other packages beside them, libraries of others have other features, and
# much would be compiled twice.
cargo build --profile first --lib \
    --package landeck-launcher --bin landeck --package landeckd --bin landeckd \
    --package landeck-mpi --package landeck-deck \
    --package landeck-examples --bin draw_plate --package xtask --bin xtask

step "Installing it into $installed (xtask install)"
"$built/xtask" install --profile first --compiled --prefix "$installed"
mkdir -p "$results"

step "Compiling examples/c/heat.c (mpicc_abi)"
# Without contracted operations the compiler's choices change no bit of a cell.
"$installed/bin/mpicc_abi" -O3 -ffp-contract=off examples/c/heat.c -o "$installed/heat" -lm

if [ "$hosts" -gt 1 ]; then
    where="$processes processes on $hosts hosts"
    step "Heat equation, size $size, $steps steps, on $where (xtask hosts $hosts -- landeck run --host $(host_list))"
    heat landeck "$built/xtask" hosts "$hosts" -- \
        "$installed/bin/landeck" run --rsh landeck-rsh --host "$(host_list)" -n "$processes"
else
    where="$processes processes"
    step "Heat equation, size $size, $steps steps, on $where (landeck run)"
    heat landeck "$installed/bin/landeck" run -n "$processes"
fi

step "The same on 1 process, to compare"
heat one "$installed/bin/landeck" run -n 1
same landeck one

times="Landeck $(time_of $results/heat-landeck.txt)"
if [ -x "$mpich/bin/mpiexec" ]; then
    step "The same binary with the library and the launcher of MPICH, on $processes processes"
    # As shipped, its processes wait without letting others run, which takes minutes where there are
    # fewer processors than processes.
    LD_LIBRARY_PATH="$PWD/$mpich/lib" MPIR_CVAR_CH4_PROGRESS_THROTTLE=1 \
        heat mpich "$mpich/bin/mpiexec" -n "$processes"
    same landeck mpich
    times="$times, MPICH (throttled) $(time_of $results/heat-mpich.txt)"
fi

rm -f "$results"/heat-*.cells
step "Drawing the plate (draw_plate)"
"$built/draw_plate" "$results/heat-landeck.plate" "$results/heat.png" \
    "Waves on a plate, $(with_commas "$steps") steps later" --below "$size x $size cells, $where. $times"
say "$where: $times. Look at it: $results/heat.png"
