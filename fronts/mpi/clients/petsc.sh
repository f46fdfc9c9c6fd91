#!/bin/sh
# PETSc's own parallel tests on this library: PETSc is built from its source package, unmodified, with the
# installed wrapper, and those of its tests that use several processes run with as many as they ask for.
#
#   petsc.sh FOLDER [PART...]     FOLDER keeps what was downloaded and built; PART is "build", or a part of
#                                 PETSc whose tests run; all of them if none is named
#
# Prints "test result: ..." for each part, and ends with 77 where PETSc cannot be had or built.
# petsc-left-out.txt has the tests that do not run, each with its reason.
#
# All of it takes an hour or two, so it may be ended at any time and goes on when it is started again: the build
# where make left it, the tests after the last group of them, as long as the library is the same.
set -eu
. "$(dirname -- "$0")/common.sh"

version=3.25.2
test_limit_s=120
tests_per_group=30
shift
[ $# -gt 0 ] || set -- build sys vec mat dm ksp snes ts tao
built=$folder/petsc-$version
python=$folder/petsc-python
results=$folder/petsc-results${LANDECK_ON_HOSTS:-}
jobs=$(nproc)
export PETSC_DIR="$built" PETSC_ARCH=landeck

download() {
    python_environment "$python"
    # Its package is only unpacked here; pip asks for its metadata all the same.
    "$python/bin/pip" install setuptools wheel >"$log" 2>&1 || cannot "pip does not work here; $log says why"
    source_package petsc "$version" "$python/bin/pip"
}

configure() {
    "$python/bin/python" ./configure --with-cc="$prefix/bin/mpicc_abi" --with-cxx=0 --with-fc=0 \
        --with-mpiexec="$prefix/lib/landeck/bin/mpiexec" --with-x=0 --with-debugging=0 --with-sowing=0 \
        --with-c2html=0 --with-make-np="$jobs" COPTFLAGS=-O1 >"$log" 2>&1 ||
        cannot "it could not be configured (it needs make, liblapack-dev and libblas-dev); $log says why"
}

# What was made with another header is made again.
build() {
    cmp -s "$prefix/include/mpi.h" "$PETSC_ARCH/configured-with.h" || {
        rm -rf "$PETSC_ARCH"
        configure
        cp "$prefix/include/mpi.h" "$PETSC_ARCH/configured-with.h"
    }
    [ -e "$PETSC_ARCH/built" ] || {
        make V=0 libs >"$log" 2>&1 || cannot "it could not be built; $log says why"
        touch "$PETSC_ARCH/built"
    }
    make -s -f gmakefile.test "$PETSC_ARCH/tests/testfiles" >"$log" 2>&1 ||
        cannot "its tests could not be made; $log says why"
}

# run_group FILE TEST...: runs tests and leaves what they said in a file, one line for each check.
run_group() {
    said=$1
    shift
    make -k -j "$jobs" -f gmakefile.test test TIMEOUT="$test_limit_s" TESTTARGETS="$*" >"$log" 2>&1 || true
    cp "$PETSC_ARCH/tests/test_${PETSC_ARCH}_tap.log" "$said.new"
    for name; do
        [ -e "$PETSC_ARCH/tests/counts/$name.counts" ] || echo "not ok $name # not run" >>"$said.new"
    done
    mv "$said.new" "$said"
}

# run_part PART: runs the tests of a part, group by group, without those groups that ran already.
run_part() {
    mkdir -p "$results/$1"
    "$python/bin/python" "$own/petsc-list.py" "$PETSC_ARCH/tests/datatest.pkl" "$1" |
        { grep -vxEf "$folder/petsc-left-out" || true; } | xargs -n "$tests_per_group" >"$results/$1.groups"
    number=0
    while read -r group; do
        number=$((number + 1))
        # shellcheck disable=SC2086 # names of tests have no blanks
        [ -e "$results/$1/$number" ] || run_group "$results/$1/$number" $group </dev/null
    done <"$results/$1.groups"
}

# sum_up PART: one line of what a part's tests said; fails if one failed. The next run begins anew.
sum_up() {
    cat "$results/$1"/[0-9]* >"$results/$1.tap" 2>/dev/null || true
    passed=$(grep -E '^ *ok' "$results/$1.tap" | grep -vc '# SKIP' || true)
    skipped=$(grep -E '^ *ok.*# SKIP' "$results/$1.tap" | grep -vc 'Command failed' || true)
    bad=$(grep -c '^not ok' "$results/$1.tap" || true)
    rm -rf "${results:?}/$1"
    echo "test result: petsc, $1: $passed passed; $bad failed; $skipped skipped by itself"
    [ "$bad" = 0 ] || {
        grep -A 8 '^not ok' "$results/$1.tap" || true
        return 1
    }
}

[ -d "$built" ] || download
cd "$built"
build
over_hosts "$@"
mkdir -p "$results"
cmp -s "$prefix/lib/libmpi_abi.so.1" "$results/library" || {
    rm -rf "${results:?}"/*
    cp "$prefix/lib/libmpi_abi.so.1" "$results/library"
}
left_out >"$folder/petsc-left-out"
failed=0
for part; do
    [ "$part" = build ] && continue
    run_part "$part"
    sum_up "$part" || failed=1
done
exit "$failed"
