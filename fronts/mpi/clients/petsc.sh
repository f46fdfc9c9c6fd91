#!/bin/sh
# PETSc's own parallel tests on this library: PETSc is built from its source package, unmodified, with the
# installed wrapper, and those of its tests that use several processes run with as many as they ask for.
#
#   petsc.sh FOLDER [PACKAGE...]  FOLDER keeps what was downloaded and built; PACKAGE is a part of PETSc,
#                                 all that have tests if not given
#
# Prints "test result: ..." for each package, and ends with 77 where PETSc cannot be had or built.
# petsc-left-out.txt has the tests that do not run, each with its reason.
set -eu

version=3.25.2
test_limit_s=120
own=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
folder=$(CDPATH= cd -- "$1" && pwd)
shift
[ $# -gt 0 ] || set -- sys vec mat dm ksp snes ts tao
prefix=$folder/prefix
built=$folder/petsc-$version
python=$folder/petsc-python
log=$folder/petsc.log
jobs=$(nproc)

cannot() {
    tail -n 5 "$log" 2>/dev/null || true
    echo "petsc: $*"
    exit 77
}

download() {
    [ -x "$python/bin/pip" ] || python3 -m venv "$python" >"$log" 2>&1 || cannot "python3 -m venv does not work here"
    # Its package is only unpacked here; pip asks for its metadata all the same.
    "$python/bin/pip" install setuptools wheel >"$log" 2>&1 &&
        "$python/bin/pip" download --no-deps --no-binary :all: --no-build-isolation -d "$folder" \
            "petsc==$version" >>"$log" 2>&1 || cannot "its source package could not be downloaded; $log says why"
    tar -xzf "$folder/petsc-$version.tar.gz" -C "$folder"
}

configure() {
    "$python/bin/python" ./configure --with-cc="$prefix/bin/mpicc_abi" --with-cxx=0 --with-fc=0 \
        --with-mpiexec="$prefix/lib/landeck/bin/mpiexec" --with-x=0 --with-debugging=0 --with-sowing=0 \
        --with-c2html=0 --with-make-np="$jobs" COPTFLAGS=-O1 >"$log" 2>&1 ||
        cannot "it could not be configured (it needs make, liblapack-dev and libblas-dev); $log says why"
}

[ -x "$prefix/bin/mpicc_abi" ] || { echo "petsc: no installation in $prefix" >&2; exit 1; }
export PETSC_DIR="$built" PETSC_ARCH=landeck
[ -d "$built" ] || download
cd "$built"
# What was built with an older header is built again.
[ "$prefix/include/mpi.h" -ot "$PETSC_ARCH/built" ] || {
    rm -rf "$PETSC_ARCH"
    configure
    make V=0 libs >"$log" 2>&1 || cannot "it could not be built; $log says why"
    touch "$PETSC_ARCH/built"
}
make -s -f gmakefile.test "$PETSC_ARCH/tests/testfiles" >"$log" 2>&1 || cannot "its tests could not be made; $log says why"

left_out=$folder/petsc-left-out
sed -e 's/ *#.*//' -e '/^$/d' "$own/petsc-left-out.txt" >"$left_out"
failed=0
for package; do
    wanted=$("$python/bin/python" "$own/petsc-list.py" "$PETSC_ARCH/tests/datatest.pkl" "$package" |
        grep -vxEf "$left_out" || true)
    make -k -j "$jobs" -f gmakefile.test test TIMEOUT="$test_limit_s" \
        TESTTARGETS="$(echo "$wanted" | tr '\n' ' ')" >"$log" 2>&1 || true
    results=$PETSC_ARCH/tests/test_${PETSC_ARCH}_tap.log
    not_run=$(for name in $wanted; do [ -e "$PETSC_ARCH/tests/counts/$name.counts" ] || echo "$name"; done)
    passed=$(grep -E '^ *ok' "$results" | grep -vc '# SKIP' || true)
    skipped=$(grep -E '^ *ok.*# SKIP' "$results" | grep -vc 'Command failed' || true)
    bad=$(($(grep -c '^not ok' "$results" || true) + $(echo "$not_run" | grep -c . || true)))
    echo "test result: petsc, $package: $passed passed; $bad failed; $skipped skipped by itself"
    [ "$bad" = 0 ] || {
        failed=1
        grep -A 8 '^not ok' "$results" || true
        [ -z "$not_run" ] || echo "not run: $not_run"
    }
done
exit "$failed"
