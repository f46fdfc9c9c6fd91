#!/bin/sh
# Programs that people run, from the source packages of Debian (or what has its archive), each unmodified: built
# with the installed wrapper, and run with its own tests.
#
#   distribution.sh FOLDER [PROGRAM...]   FOLDER keeps what was downloaded and built; PROGRAM is netpipe, boost,
#                                         hpcc, sundials, mrbayes, hypre, fftw3 or mpich; all if not given
#
# Prints "test result: ..." for each, and ends with 77 where their sources cannot be had. A program that cannot be
# built has failed. distribution-left-out.txt has the tests of MPICH's suite that do not run, each with its reason.
set -eu
. "$(dirname -- "$0")/common.sh"

run_limit_s=120
shift
[ $# -gt 0 ] || set -- netpipe boost hpcc sundials mrbayes hypre fftw3 mpich
jobs=$(nproc)
sources=$folder/distribution
PATH=$prefix/lib/landeck/bin:$PATH
export PATH

# apt ARGUMENT...: apt-get with the source packages of the archives that this system uses.
apt() {
    apt-get -o Dir::Etc::sourceparts="$sources/apt/parts" -o Dir::Etc::sourcelist=/dev/null \
        -o Dir::State::Lists="$sources/apt/lists" "$@" >"$log" 2>&1
}

learn_of_sources() {
    command -v apt-get >/dev/null || cannot "there is no apt-get here"
    [ -e "$sources/apt/known" ] && return
    mkdir -p "$sources/apt/parts" "$sources/apt/lists/partial"
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
        [ -s "$list" ] || continue
        sed -e 's/^Types: .*/Types: deb-src/' -e 's/^deb /deb-src /' "$list" >"$sources/apt/parts/${list##*/}"
    done
    apt update || cannot "apt-get knows no source packages; $log says why"
    touch "$sources/apt/known"
}

# unpack PACKAGE FOLDER [PART]: the source of a package, or a part of it, as its authors published it.
unpack() {
    [ -d "$sources/$2" ] || get "$@"
    [ -z "$only_unpack" ] || exit 0
}

get() {
    # What Debian adds is not needed, and not unpacked.
    (cd "$sources" && apt source --download-only "$1") || true
    archive=$(find "$sources" -maxdepth 1 -name "$1_*.orig.tar.?z" | head -n 1)
    [ -n "$archive" ] || cannot "the source of $1 could not be downloaded; $log says why"
    mkdir -p "$sources/$2.new"
    tar -xf "$archive" -C "$sources/$2.new" --strip-components=1 --wildcards "*/${3:-*}"
    mv "$sources/$2.new" "$sources/$2"
}

passed=0
bad=0
# one N PROGRAM ARGUMENT...: a run that passes or fails as a whole.
one() {
    processes=$1
    shift
    if timeout "$run_limit_s" mpiexec -n "$processes" "$@" >"$log" 2>&1; then
        passed=$((passed + 1))
    else
        bad=$((bad + 1))
        echo "FAILED: mpiexec -n $processes $*"
        tail -n 10 "$log"
    fi
}

# A fact that is found in what the last run wrote, or in a file.
found() {
    if grep -qE "$1" "${2:-$log}"; then
        passed=$((passed + 1))
    else
        bad=$((bad + 1))
        echo "FAILED: no \"$1\" in ${2:-$log}"
    fi
}

netpipe() {
    unpack netpipe netpipe
    cd "$sources/netpipe"
    make CC=mpicc mpi >"$log" 2>&1 || return 1
    one 2 ./NPmpi -u 1000000 -o result
    one 2 ./NPmpi -u 100000 -I -a -o result
    one 2 ./NPmpi -u 100000 -2 -a -n 50 -o result
}

# Boost.MPI with its tests: the processes are those of its Jamfile.
boost() {
    unpack boost1.81 boost
    cd "$sources/boost"
    mpi=$PWD/libs/mpi
    mkdir -p own
    cd own
    for source in "$mpi"/src/*.cpp; do
        object=$(basename "$source" .cpp).o
        [ -e "$object" ] || mpicxx -O0 -I"$mpi/include" -c "$source" -o "$object" >"$log" 2>&1 || return 1
    done
    ar rcs libboost_mpi.a ./*.o
    sed -n 's/.*mpi-test \([a-z_]*\)[-a-z0-9]* *: *[^:]*: *: *\([0-9 ]*\).*/\1 \2/p
            s/.*mpi-test \([a-z_]*\) *\].*/\1 1 2 4/p' "$mpi/test/Jamfile.v2" >tests
    while read -r name numbers; do
        source=$mpi/test/$name.cpp
        [ -e "$source" ] || source=$mpi/example/$name.cpp
        [ -e "$source" ] || continue
        [ -x "$name" ] || mpicxx -O0 -I"$mpi/include" "$source" -o "$name" libboost_mpi.a -lboost_serialization \
            >"$log" 2>&1 || return 1
        for processes in $numbers; do one "$processes" "./$name" </dev/null; done
    done <tests
}

# The HPC Challenge: Linpack, transposition, random access, Fourier transforms.
hpcc() {
    unpack hpcc hpcc
    cd "$sources/hpcc"
    sed -e 's/^ARCH .*/ARCH = landeck/' -e 's#^TOPdir .*#TOPdir = ../../..#' -e 's/^\(MP\|LA\)\([a-z]*\) .*/\1\2 =/' \
        -e 's/^LAlib =.*/LAlib = -lblas -lm/' -e 's/^CC .*/CC = mpicc/' -e 's/^LINKER .*/LINKER = mpicc/' \
        -e 's/^CCFLAGS .*/CCFLAGS = $(HPL_DEFS) -O1/' -e 's/^HPL_OPTS .*/HPL_OPTS =/' -e 's/^ARCHIVER .*/ARCHIVER = ar/' \
        -e 's/^F2CDEFS .*/F2CDEFS = -DAdd_ -DF77_INTEGER=int -DStringSunStyle/' hpl/setup/Make.Linux_PII_CBLAS >hpl/Make.landeck
    grep -q '^ARCHIVER' hpl/Make.landeck || echo 'ARCHIVER = ar' >>hpl/Make.landeck
    make arch=landeck >"$log" 2>&1 || return 1
    for processes in 2 4 8; do
        sed -e 's/^1000 *Ns/400 Ns/' -e "11s/.*/1 Ps/" -e "12s/.*/$processes Qs/" _hpccinf.txt >hpccinf.txt
        rm -f hpccoutf.txt
        one "$processes" ./hpcc
        found '^Success=1' hpccoutf.txt
        found '^PTRANS_residual=0$' hpccoutf.txt
        found '^MPIRandomAccess_ErrorsFraction=0$' hpccoutf.txt
    done
}

# Solvers of differential equations, found by CMake's find_package(MPI); all examples that are parallel.
sundials() {
    unpack sundials sundials
    mkdir -p "$sources/sundials/own"
    cd "$sources/sundials/own"
    [ -e built ] || {
        cmake .. -DENABLE_MPI=ON -DCMAKE_C_FLAGS=-O1 -DBUILD_CVODES=OFF -DBUILD_IDAS=OFF -DEXAMPLES_INSTALL=OFF \
            -DBUILD_STATIC_LIBS=OFF >"$log" 2>&1 && make -j"$jobs" >"$log" 2>&1 || return 1
        touch built
    }
    for example in examples/*/parallel/* examples/*/C_parallel/*; do
        [ -f "$example" ] && [ -x "$example" ] || continue
        case $example in
        */test_nvector_mpi) one 4 "$example" 5000 0 0 ;;
        */test_nvector_*) one 4 "$example" 5000 4 0 ;;
        *) one 4 "$example" ;;
        esac
    done
}

# Bayesian phylogeny: chains that exchange their states.
mrbayes() {
    unpack mrbayes mrbayes
    cd "$sources/mrbayes"
    [ -e Makefile ] || ./configure --with-mpi --without-beagle CFLAGS=-O1 >"$log" 2>&1 || return 1
    make -j"$jobs" >"$log" 2>&1 || return 1
    cd examples
    cat >own.nex <<END
#NEXUS
begin mrbayes;
  set autoclose=yes nowarn=yes seed=7 swapseed=7;
  execute primates.nex;
  lset nst=6 rates=invgamma;
  mcmc ngen=2000 samplefreq=100 printfreq=1000 diagnfreq=1000 filename=own;
end;
END
    for processes in 1 2 4 8; do
        one "$processes" ../src/mb own.nex
        found 'Analysis completed'
    done
}

# Multigrid: each of its scripts compares what several runs found.
hypre() {
    unpack hypre hypre
    cd "$sources/hypre/src"
    [ -e config.status ] || ./configure CC=mpicc CXX=mpicxx CFLAGS=-O1 CXXFLAGS=-O1 --disable-fortran --with-MPI \
        >"$log" 2>&1 || return 1
    make -j"$jobs" >"$log" 2>&1 && make -j"$jobs" test >"$log" 2>&1 || return 1
    cd test
    for script in TEST_struct/*.sh TEST_lobpcg/*.sh TEST_sstruct/*.sh TEST_ams/*.sh TEST_ij/*.sh; do
        errors=${script%.sh}.err
        # Numbers as they were on another machine, to so many places.
        bash ./runtest.sh -mpi "mpiexec -n" -rtol 1e-3 -atol 1e-6 "$script" >"$log" 2>&1 || true
        if [ -e "$errors" ] && [ ! -s "$errors" ]; then
            passed=$((passed + 1))
        else
            bad=$((bad + 1))
            echo "FAILED: $script"
            head -n 10 "$errors" 2>/dev/null || true
        fi
    done
}

# Fourier transforms with up to four processes, compared with those of one.
fftw3() {
    unpack fftw3 fftw3
    cd "$sources/fftw3"
    [ -e Makefile ] || ./configure --enable-mpi --disable-fortran --disable-doc MPICC=mpicc CFLAGS=-O1 >"$log" 2>&1 ||
        return 1
    make -j"$jobs" >"$log" 2>&1 || return 1
    make -C mpi check MPIRUN=mpiexec >"$log" 2>&1 || tail -n 10 "$log"
    for processes in '1 CPU' '2 CPUs' '3 CPUs' '4 CPUs'; do found "MPI FFTW transforms passed .*, $processes"; done
}

# MPICH's own test suite, of the chapters that are here; each list of tests without those that are left out. The tests
# of mistakes expect that a mistake which is about no communicator is told to the handler of MPI_COMM_WORLD, as it was
# before MPI 4.0, so they run with a first handler that returns.
mpich() {
    unpack mpich mpich test/mpi
    cd "$sources/mpich/test/mpi"
    [ -e Makefile ] || ./configure --with-mpi="$prefix/lib/landeck" --enable-fortran=no --disable-cxx --disable-spawn \
        --disable-rma --disable-romio --disable-part --enable-strictmpi CFLAGS=-O1 >"$log" 2>&1 || return 1
    for part in util dtpools; do make -j"$jobs" -C "$part" >"$log" 2>&1 || return 1; done
    left_out >left-out
    find . -name testlist | while read -r list; do
        awk -v folder="$(dirname "${list#./}")" '
            FILENAME == "left-out" { out[$1]; next }
            !(folder "/" $1 in out)' left-out "$list" >"$list.own"
    done
    for chapter in attr coll comm datatype errhan errors group info init pt2pt threads topo; do
        echo "$chapter" >testlist.own
        handler=mpi_errors_are_fatal
        [ "$chapter" != errors ] || handler=mpi_errors_return
        LANDECK_MPI_INITIAL_ERRHANDLER=$handler MPITEST_TIMEOUT=$run_limit_s \
            ./runtests -srcdir=. -tests=testlist.own -tapfile="$PWD/own.tap" >"$log" 2>&1 || true
        good=$(grep '^ok' own.tap | grep -vc '# SKIP' || true)
        [ "$good" -gt 0 ] || bad=$((bad + 1))
        passed=$((passed + good))
        bad=$((bad + $(grep -c '^not ok' own.tap || true)))
        awk '/^(not )?ok/ { shown = /^not/ } shown' own.tap
    done
}

learn_of_sources
only_unpack=yes
for program; do ("$program"); done
only_unpack=
over_hosts "$@"
failed=0
for program; do
    passed=0
    bad=0
    "$program" || {
        bad=$((bad + 1))
        echo "FAILED: $program could not be built; $log says why"
        tail -n 10 "$log"
    }
    echo "test result: $program: $passed passed; $bad failed"
    [ "$bad" = 0 ] || failed=1
done
exit "$failed"
