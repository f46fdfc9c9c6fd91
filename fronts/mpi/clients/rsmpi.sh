#!/bin/sh
# The tests and examples of rsmpi, MPI for Rust, on this library: the crate "mpi" is built as it is
# published, with the installed wrapper, and its examples run with several numbers of processes.
#
#   rsmpi.sh FOLDER [N...]        FOLDER keeps what was downloaded and built; N is 1 2 3 4 if not given
#
# Prints "test result: ..." for its tests and for each N, and ends with 77 where the crate cannot be had or
# built. rsmpi-left-out.txt has the examples that do not run, each with its reason.
set -eu
. "$(dirname -- "$0")/common.sh"

version=0.8.2
version_of_bindings=0.2.4
limit_s=60
shift
[ $# -gt 0 ] || set -- 1 2 3 4
built=$folder/rsmpi-$version

# cargo gives whole crates, with their tests and examples, only as the dependencies of another one.
download() {
    mkdir -p "$built/get"
    : >"$built/get/lib.rs"
    cat >"$built/get/Cargo.toml" <<END
[package]
name = "get"
version = "0.0.0"
edition = "2021"
[lib]
path = "lib.rs"
[dependencies]
mpi = "=$version"
mpi-sys = "=$version_of_bindings"
[workspace]
END
    (cd "$built/get" && cargo vendor --versioned-dirs vendor) >"$log" 2>&1 ||
        cannot "the crate mpi $version could not be downloaded; $log says why"
    mv "$built/get/vendor/mpi-$version" "$built/mpi"
    mv "$built/get/vendor/mpi-sys-$version_of_bindings" "$built/mpi-sys"
    rm -rf "$built/get"
    # The versions that the crate was tested with.
    cp "$built/mpi/Cargo.lock" "$built/Cargo.lock"
    cat >"$built/Cargo.toml" <<END
[workspace]
members = ["mpi", "mpi-sys"]
resolver = "2"
[patch.crates-io]
mpi-sys = { path = "mpi-sys" }
END
}

[ -f "$built/Cargo.toml" ] || { rm -rf "$built"; download; }

# An installation that is newer than what was built with its header.
[ "$prefix/include/mpi.h" -ot "$built/target/built" ] || rm -rf "$built/target"
export MPICC="$prefix/bin/mpicc_abi" CARGO_TARGET_DIR="$built/target" LD_LIBRARY_PATH="$prefix/lib"
cd "$built"
cargo build --package mpi --features derive,complex --examples >"$log" 2>&1 ||
    cannot "it could not be built (it needs libclang-dev); $log says why"
touch "$built/target/built"

failed=0
# Each test is a job of one; cargo prints their results.
timeout "$((10 * limit_s))" cargo test --package mpi --package mpi-sys --features mpi/derive,mpi/complex \
    --no-fail-fast -- --test-threads=1 2>"$log" || { failed=1; tail -n 20 "$log"; }

# Whether an example is left out with so many processes: "NAME" or "NAME N".
is_left_out() {
    left_out | grep -qxE "$1( $2)?"
}

for processes; do
    passed=0
    bad=0
    for source in mpi/examples/*.rs; do
        name=$(basename "$source" .rs)
        is_left_out "$name" "$processes" && continue
        if "$landeck" run -n "$processes" --timeout "$limit_s" "$built/target/debug/examples/$name" \
            >"$log" 2>&1; then
            passed=$((passed + 1))
        else
            bad=$((bad + 1))
            echo "FAILED: example $name, n = $processes"
            tail -n 10 "$log"
        fi
    done
    echo "test result: rsmpi's examples, n = $processes: $passed passed; $bad failed"
    [ "$bad" = 0 ] || failed=1
done
exit "$failed"
