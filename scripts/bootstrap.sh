#!/bin/sh
# Finds the tools that Landeck is built with, installs those that are missing, and runs a command
# with them:
#
#     scripts/bootstrap.sh run  COMMAND...     a C compiler, make, Rust
#     scripts/bootstrap.sh test COMMAND...     these, and what only the tests need
#     scripts/bootstrap.sh soak COMMAND...     these, and what the long tests of make soak need
#
# Quiet when nothing is missing. Otherwise it says what it installs before it does so, asks nothing,
# and uses the distribution's packages (apt-get, as root or through sudo); Rust comes from the
# distribution where that is new enough and from rustup otherwise.
set -eu

rust_minor_min=88 # rust-version in Cargo.toml is 1.88
rustup_url=https://static.rust-lang.org/rustup/rustup-init.sh

say() { echo "bootstrap: $*" >&2; }

fail() {
    say "$1"
    say "What now: $2"
    exit 1
}

has() { command -v "$1" >/dev/null 2>&1; }

# ---- packages ----------------------------------------------------------------------------------

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif has sudo; then
        sudo "$@"
    else
        fail "cannot install \"$wanted\": this user is not root and there is no sudo." \
            "run this once as root, or install \"$wanted\" yourself."
    fi
}

# apt-get's lists are fetched once, and only when something has to be installed.
refresh_lists() {
    [ -z "${lists_are_fresh:-}" ] || return 0
    has apt-get || fail "cannot install \"$wanted\": this system has no apt-get." \
        "install \"$wanted\" with this system's own tool and start again."
    say "fetching the package lists (apt-get update)"
    as_root apt-get update -qq || fail "apt-get update failed (its own message stands above)." \
        "check the network and /etc/apt, then start again."
    lists_are_fresh=yes
}

install() {
    wanted="$*"
    refresh_lists
    say "installing $wanted (apt-get install)"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" \
        >"$log" 2>&1 </dev/null || {
        cat "$log" >&2
        fail "apt-get could not install \"$wanted\" (its own message stands above)." \
            "repair that, or install \"$wanted\" yourself, then start again."
    }
}

# Whether a file of this pattern is there.
has_file() {
    # shellcheck disable=SC2086  # the pattern is to be expanded
    set -- $1
    [ -e "$1" ]
}

# Reports a tool's package as missing unless the tool is there.
need() {
    has "$1" || missing="$missing $2"
}

# ---- Rust --------------------------------------------------------------------------------------

# Whether a version text ("1.96.0+dfsg1-1~deb12u2", "1.85.0") is new enough.
new_enough() {
    minor=${1#*1.}
    minor=${minor%%[!0-9]*}
    case $1 in 1.* | *:1.*) [ -n "$minor" ] && [ "$minor" -ge "$rust_minor_min" ] ;; *) return 1 ;; esac
}

# Whether the cargo and rustc of this PATH are there and new enough.
rust_works() {
    version=$(PATH=$1 rustc --version 2>/dev/null) || return 1
    version=${version#rustc }
    new_enough "$version" && PATH=$1 command -v cargo >/dev/null 2>&1
}

# Takes the first good Rust: the user's choice, rustup's, a versioned package's, rustup's stable one
# beside an older default.
find_rust() {
    rust_works "$PATH" && return 0
    for folder in "${CARGO_HOME:-$HOME/.cargo}/bin" /usr/lib/rust-*/bin; do
        if [ -x "$folder/rustc" ] && rust_works "$folder:$PATH"; then
            PATH=$folder:$PATH
            return 0
        fi
    done
    has rustup && RUSTUP_TOOLCHAIN=stable rust_works "$PATH" && export RUSTUP_TOOLCHAIN=stable
}

candidate() {
    apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: //p'
}

# The newest compiler package that will do, as "rustc-package cargo-package", or nothing.
rust_packages() {
    for suffix in "" -web $(apt-cache pkgnames rustc-1. 2>/dev/null | sed -n 's/^rustc\(-1\.[0-9]*\)$/\1/p' |
        sort -t. -k2,2nr); do
        if new_enough "$(candidate "rustc$suffix")" && new_enough_cargo "$(candidate "cargo$suffix")"; then
            echo "rustc$suffix cargo$suffix"
            return 0
        fi
    done
}

# Older cargo packages carry their own count, 0.66 for 1.65; none of those is new enough.
new_enough_cargo() {
    case $1 in 0.*) return 1 ;; *) new_enough "$1" ;; esac
}

install_rust() {
    wanted="rustc cargo"
    refresh_lists
    packages=$(rust_packages)
    if [ -n "$packages" ]; then
        # shellcheck disable=SC2086  # two words, two packages
        install $packages
    else
        install_rustup
    fi
    find_rust || fail "Rust was installed, but no rustc 1.$rust_minor_min or newer is found." \
        "look at \"rustc --version\" and PATH ($PATH)."
}

install_rustup() {
    say "installing Rust with rustup, as this distribution has none of 1.$rust_minor_min or newer (into ${CARGO_HOME:-$HOME/.cargo})"
    if has rustup; then
        rustup toolchain install stable --profile minimal >"$log" 2>&1
    else
        wanted="curl"
        has curl || install curl
        fetch_and_run_rustup >"$log" 2>&1
    fi || {
        cat "$log" >&2
        fail "rustup could not install Rust (its own message stands above)." \
            "check the network, or install Rust 1.$rust_minor_min or newer by hand."
    }
}

fetch_and_run_rustup() {
    curl --proto '=https' --tlsv1.2 -sSf "$rustup_url" -o "$log.rustup" || return 1
    sh "$log.rustup" -y -q --profile minimal --no-modify-path </dev/null
}

# Whether the compiler in use is one of rustup's.
has_rustup_compiler() {
    has rustup && [ "$(dirname "$(command -v rustc)")" = "$(dirname "$(command -v rustup)")" ]
}

# rustfmt and clippy come from where the compiler comes from.
install_rust_checkers() {
    compiler=$(command -v rustc)
    if has_rustup_compiler; then
        say "installing rustfmt and clippy (rustup component add)"
        rustup component add rustfmt clippy >"$log" 2>&1 || {
            cat "$log" >&2
            fail "rustup could not add rustfmt and clippy." "run \"rustup component add rustfmt clippy\"."
        }
        return 0
    fi
    owner=$(dpkg -S "$(readlink -f "$compiler")" 2>/dev/null | sed 's/:.*//')
    case $owner in
        rustc) install rustfmt rust-clippy ;;
        rustc-web) install rustfmt-web rust-web-clippy ;;
        rustc-1.*) install "rustfmt-${owner#rustc-}" "rust-${owner#rustc-}-clippy" ;;
        *) fail "rustfmt or clippy is missing beside $compiler." "install both for this compiler." ;;
    esac
}

# ---- what each purpose needs --------------------------------------------------------------------

bring_run() {
    missing=""
    need cc gcc
    need make make
    [ -e /usr/include/stdlib.h ] || missing="$missing libc6-dev"
    [ -e /etc/ssl/certs/ca-certificates.crt ] || missing="$missing ca-certificates" # cargo fetches crates
    # shellcheck disable=SC2086
    [ -z "$missing" ] || install $missing
    find_rust || install_rust
}

bring_test() {
    missing=""
    need g++ g++               # links the fuzzers
    need ip iproute2           # hosts made of namespaces
    need unshare util-linux
    need nsenter util-linux
    need git git               # the tree that is tested
    need pkg-config pkg-config # the installed landeck.pc is used as a user would
    need gdb gdb               # MPI programs run below both
    need valgrind valgrind
    # The MPIs of others, to run with and to compare with, come from the Python package index.
    python3 -c 'import venv, ensurepip' 2>/dev/null || missing="$missing python3-venv"
    # shellcheck disable=SC2086
    [ -z "$missing" ] || install $missing
    bench/peers.sh --no-programs mpich ompi impi >&2 || say "the tests with other MPIs will be skipped"
    add_slurm
    add_sshd
    has nft || [ -x /usr/sbin/nft ] || (install nftables) ||
        say "the tests with routers and with lossy networks will be skipped"
    if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
        install_rust_checkers
    fi
    add_other_architecture
}

# Slurm's daemons, which only root can start. Without them one suite is skipped, and says so.
add_slurm() {
    [ "$(id -u)" = 0 ] || return 0
    missing=""
    need slurmctld slurmctld
    need slurmd slurmd
    need srun slurm-client
    need munged munge
    has_file "/usr/lib/*/pmix2/lib/libpmix.so" || has_file "/usr/lib/*/libpmix.so" || missing="$missing libpmix-dev"
    # shellcheck disable=SC2086
    [ -z "$missing" ] || (install $missing) || say "the tests under Slurm will be skipped"
}

# An sshd for hosts made of namespaces. None may start or be enabled on this computer itself: a policy forbids the
# first while the package is installed, and the second is undone.
add_sshd() {
    has sshd || [ -x /usr/sbin/sshd ] && return 0
    policy=/usr/sbin/policy-rc.d
    (
        if [ ! -e "$policy" ]; then
            trap 'as_root rm -f "$policy"' EXIT
            wanted=openssh-server
            printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
            as_root chmod 755 "$policy"
        fi
        install openssh-server openssh-client
        ! has systemctl || as_root systemctl disable --quiet ssh.service ssh.socket >"$log" 2>&1 || true
    ) || say "the tests with ssh will be skipped"
}

# The compilers of the architecture that this machine is not: C for the cryptographic library, and Rust's
# standard library, which rustup has at hand and the distributions only for foreign-architecture systems.
# Without one of them one suite is skipped, and says so.
add_other_architecture() {
    missing=""
    if [ "$(uname -m)" = x86_64 ]; then
        need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
        [ -e /usr/aarch64-linux-gnu/include/stdlib.h ] || missing="$missing libc6-dev-arm64-cross"
    fi
    # shellcheck disable=SC2086
    [ -z "$missing" ] || (install $missing) || say "the aarch64 suite will be skipped"
    has_rustup_compiler || return 0
    libraries=$(rustc --print sysroot)/lib/rustlib
    [ ! -d "$libraries/aarch64-unknown-linux-gnu" ] || return 0
    say "installing Rust's standard library for aarch64 (rustup target add)"
    rustup target add aarch64-unknown-linux-gnu >"$log" 2>&1 ||
        say "it could not be installed; the aarch64 suite will be skipped"
}

bring_soak() {
    missing=""
    if [ "$(uname -m)" = x86_64 ]; then
        need qemu-aarch64 qemu-user # runs the tests of the other architecture
    fi
    # MPI programs of others: rsmpi reads mpi.h with libclang, PETSc computes with BLAS and LAPACK.
    has_file "/usr/lib/llvm-*/lib/libclang*.so" || missing="$missing libclang-dev"
    has_file "/usr/lib/*/liblapack.so" || missing="$missing libblas-dev liblapack-dev"
    # shellcheck disable=SC2086
    [ -z "$missing" ] || install $missing
    add_nightly
}

# The sanitizers need a nightly compiler with the sources of its standard library. Without it two suites
# are skipped, and say so.
add_nightly() {
    has_rustup_compiler || return 0
    sources=$(rustc +nightly --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library/std
    [ ! -d "$sources" ] || return 0
    say "installing a nightly Rust with the sources of its library (rustup toolchain install)"
    rustup toolchain install nightly --profile minimal --component rust-src >"$log" 2>&1 ||
        say "it could not be installed; the suites addresses and races will be skipped"
}

[ $# -ge 1 ] || fail "no word says what the tools are for." "use: scripts/bootstrap.sh run|test|soak COMMAND..."
purpose=$1
shift
log=$(mktemp "${TMPDIR:-/tmp}/landeck-bootstrap.XXXXXX")
trap 'rm -f "$log" "$log.rustup"' EXIT
case $purpose in
    run) bring_run ;;
    test)
        bring_run
        bring_test
        ;;
    soak)
        bring_run
        bring_test
        bring_soak
        ;;
    *) fail "\"$purpose\" is not a purpose." "use: scripts/bootstrap.sh run|test|soak COMMAND..." ;;
esac
rm -f "$log" "$log.rustup"
[ $# = 0 ] || exec "$@"
