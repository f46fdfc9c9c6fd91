#!/bin/sh
# The installed product as its users see it: every part in its place, a C program built by
# pkg-config and run by the installed launcher, manual pages and completions that know the options.
set -eu
cd "$(dirname "$0")/.."

prefix=$(mktemp -d)
staged=$(mktemp -d)
trap 'rm -rf "$prefix" "$staged"' EXIT

fail() {
    echo "install: $*" >&2
    exit 1
}

# What the other tests have built already: this one is about places.
place() {
    cargo xtask install --profile dev "$@"
}
place --prefix "$prefix"
place --prefix /usr --destdir "$staged"

names="mpicc mpicxx mpic++ mpiexec mpirun"
for part in bin/landeck bin/landeckd bin/mpicc_abi bin/mpicxx_abi lib/landeck/bin/mpicc lib/landeck/bin/mpicxx \
    lib/landeck/bin/mpic++ lib/landeck/bin/mpiexec lib/landeck/bin/mpirun lib/pkgconfig/mpi_abi.pc lib/libmpi_abi.so.1 lib/libmpi_abi.so include/mpi.h lib/pkgconfig/landeck.pc \
    share/man/man1/landeck.1 share/man/man1/landeck-run.1 share/man/man1/landeck-why.1 \
    share/man/man1/landeckd.1 share/man/man1/landeckd-join.1 \
    share/bash-completion/completions/landeckd share/zsh/site-functions/_landeckd \
    share/fish/vendor_completions.d/landeckd.fish \
    share/man/man1/mpicc_abi.1 share/man/man1/mpicxx_abi.1 share/man/man1/deckcc.1 share/man/man1/deckcxx.1 \
    lib/landeck/share/man/man1/mpiexec.1 lib/landeck/share/man/man1/mpirun.1 lib/landeck/share/man/man1/mpicc.1 \
    lib/libdeck.so.1 lib/libdeck.so include/deck.h lib/pkgconfig/deck.pc bin/deckcc bin/deckcxx \
    share/man/man3/deck_mbox_post.3 share/man/man7/deck.7 \
    share/bash-completion/completions/landeck share/zsh/site-functions/_landeck \
    share/fish/vendor_completions.d/landeck.fish \
    share/doc/landeck/README.md share/doc/landeck/docs/mpi.md share/doc/landeck/LICENSE-MIT; do
    [ -s "$prefix/$part" ] || fail "$part is missing below PREFIX"
    [ -s "$staged/usr/$part" ] || fail "$part is missing below DESTDIR/usr"
done
for program in landeck landeckd; do
    [ -x "$prefix/bin/$program" ] || fail "bin/$program may not be executed"
done
! grep -rq "$staged" "$staged" || fail "a staged file names DESTDIR"
for name in $names; do
    [ -x "$prefix/bin/$name" ] || fail "bin/$name is missing below a prefix of its own"
    [ ! -e "$staged/usr/bin/$name" ] || fail "/usr/bin/$name stands before that of the distribution"
done

for option in on-failure report-bindings output-dir; do
    # A manual page writes a hyphen as \-.
    sed 's/\\-/-/g' "$prefix/share/man/man1/landeck-run.1" | grep -q -- "--$option" ||
        fail "landeck-run.1 does not name --$option"
    grep -q -- "--$option" "$prefix/share/bash-completion/completions/landeck" ||
        fail "the completions do not name --$option"
done
grep -q -- "--token-file" "$prefix/share/bash-completion/completions/landeckd" ||
    fail "the completions of landeckd do not name --token-file"

"$prefix/bin/landeck" --version | grep -q '^landeck [0-9]' || fail "landeck --version says no version"

PKG_CONFIG_PATH=$prefix/lib/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046  # the flags are several words
cc -Wall -Werror fronts/mpi/tests/c/hello.c -o "$prefix/hello" $(pkg-config --cflags --libs landeck)
timeout 150 "$prefix/bin/landeck" run -n 2 "$prefix/hello" ||
    fail "a C program does not run under the installed launcher"

# shellcheck disable=SC2046
cc -Wall -Wextra -Werror examples/c/deck/first.c -o "$prefix/first" $(pkg-config --cflags --libs deck)
timeout 150 "$prefix/bin/landeck" run -n 3 "$prefix/first" |
    grep -q "the sum of 3 nodes is 3" || fail "a DECK program does not run under the installed launcher"
"$prefix/bin/deckcc" -Wall -Werror examples/c/deck/first.c -o "$prefix/first"
timeout 150 "$prefix/bin/landeck" run -n 2 "$prefix/first" | grep -q "the sum of 2 nodes is 1" ||
    fail "a program of deckcc does not find its library"
"$prefix/bin/deckcc" --show a.c | grep -q -- "-ldeck" || fail "deckcc --show shows nothing"
if command -v man >/dev/null && command -v groff >/dev/null; then
    for page in "$prefix"/share/man/man1/*.1 "$prefix"/lib/landeck/share/man/man1/*.1 "$prefix/share/man/man3/deck_mbox_post.3"; do
        man --warnings -l "$page" 2>&1 >/dev/null | grep . && fail "$page is not what man expects"
    done
fi

# shellcheck disable=SC2046
cc -Wall -Werror fronts/mpi/tests/c/ring.c -o "$prefix/ring" $(pkg-config --cflags --libs mpi_abi)
timeout 150 "$prefix/bin/landeck" run -n 3 "$prefix/ring" |
    grep -q "ring: 3 processes agree" || fail "what pkg-config says of mpi_abi makes no MPI program"

# The same where the installation was moved, to a folder with a blank: the flags are to be read as a shell reads them.
blank="$prefix/moved away"
place --prefix "$prefix/at first"
mv "$prefix/at first" "$blank"
for package in mpi_abi landeck; do
    flags=$(PKG_CONFIG_PATH="$blank/lib/pkgconfig" pkg-config --cflags --libs "$package")
    eval "cc -Wall -Werror fronts/mpi/tests/c/ring.c -o \"\$blank/ring\" $flags"
    timeout 150 "$blank/bin/landeck" run -n 2 "$blank/ring" | grep -q "ring: 2 processes agree" ||
        fail "what pkg-config says of $package that was moved makes no MPI program"
done
[ "$(readlink -f "$(ldd "$blank/ring" | sed -n 's/.*=> \(.*libmpi_abi.*\) (.*/\1/p')")" = "$blank/lib/libmpi_abi.so.1" ] ||
    fail "a program of pkg-config does not find the library that was moved"
flags=$(PKG_CONFIG_PATH="$blank/lib/pkgconfig" pkg-config --cflags --libs deck)
eval "cc -Wall -Werror examples/c/deck/first.c -o \"\$blank/first\" $flags"
timeout 150 "$blank/bin/landeck" run -n 2 "$blank/first" | grep -q "the sum of 2 nodes is 1" ||
    fail "what pkg-config says of deck that was moved makes no DECK program"

# What build systems ask the compilers. A question, or the name of a compiler, may stand anywhere.
for ask in -show --showme -compile_info -link_info --showme:compile --showme:link -show-compile-info "-c -show a.c"; do
    for compiler in mpicc_abi mpicxx deckcc deckcxx; do
        # shellcheck disable=SC2086
        "$prefix/bin/$compiler" $ask | grep -qF -- "$prefix" || fail "$compiler $ask does not say where Landeck is"
    done
done
answers() {
    wanted=$1
    shift
    said=$("$@") || fail "$* ends with $?"
    [ "$said" = "$wanted" ] || fail "$* says $said, not $wanted"
}
cd "$prefix/bin"
version=$(./landeck --version)
answers mpi_abi ./mpicc_abi --showme:libs
answers "mpicc: Landeck ${version#landeck } (Language: C)" ./mpicc -showme:version
answers "mpicxx_abi: Landeck ${version#landeck } (Language: C++)" ./mpicxx_abi --showme:version
answers "deckcxx: Landeck ${version#landeck } (Language: C++)" ./deckcxx -showme:version
answers "gcc -pipe" env CC="gcc -pipe" ./mpicc -showme:command
answers "gcc -I$prefix/include" ./mpicc -cc=gcc -compile_info
answers "gcc -I$prefix/include -c a.c" ./mpicc -c -cc=gcc -show a.c
answers "clang++ -I$prefix/include -c a.cc" ./mpicxx -cxx=clang++ -c -show a.cc
answers "gcc -I$prefix/include -c a.c" ./deckcc -cc=gcc -c -show a.c
for compiler in mpicc deckcc; do
    ! ./$compiler -cc= a.c 2>said || fail "$compiler -cc= starts something"
    grep -q "$compiler: -cc= names no compiler" said || fail "$compiler -cc= does not say what is wrong"
    ! ./$compiler -showme:what 2>said || fail "$compiler answers every question"
    grep -q "$compiler: -showme:what: there is no such question" said || fail "$compiler -showme:what says nothing"
    ./$compiler -v >said 2>&1 || { cat said; fail "$compiler -v links nothing to a program"; }
done
cd - >/dev/null
"$prefix/bin/mpicc" -cc="cc -Wall -Werror" fronts/mpi/tests/c/ring.c -o "$prefix/ring"
"$prefix/ring" | grep -q "ring: 1 processes agree" || fail "a program of mpicc -cc= does not run"
flags=$("$blank/bin/mpicxx_abi" -show -x c fronts/mpi/tests/c/ring.c -o "$blank/shown")
eval "$flags" && "$blank/shown" | grep -q "ring: 1 processes agree" || fail "what mpicxx_abi -show prints makes no MPI program"

# A project of CMake finds the compilers and the launcher: on the PATH, where MPI_HOME says, below CMAKE_PREFIX_PATH.
found_by_cmake() {
    built=$prefix/project/built
    rm -rf "$built"
    { cmake -S "$prefix/project" -B "$built" "$@" && cmake --build "$built"; } >"$prefix/project/log" 2>&1 || {
        cat "$prefix/project/log"
        fail "find_package(MPI) finds nothing that works with $*"
    }
    timeout 150 "$(cat "$built/launcher")" -n 3 "$built/ring" | grep -q "ring: 3 processes agree" ||
        fail "a program of a CMake project does not run with $*"
}
if command -v cmake >/dev/null && command -v c++ >/dev/null; then
    mkdir "$prefix/project"
    cp fronts/mpi/tests/c/ring.c fronts/mpi/tests/c/throw.cpp fronts/mpi/tests/c/*.h "$prefix/project"
    cat >"$prefix/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.13)
set(LANGUAGES C CACHE STRING "")
project(ring ${LANGUAGES})
find_package(MPI REQUIRED COMPONENTS ${LANGUAGES})
add_executable(ring ring.c)
target_link_libraries(ring MPI::MPI_C)
if(TARGET MPI::MPI_CXX)
  add_executable(throw throw.cpp)
  target_link_libraries(throw MPI::MPI_CXX)
endif()
file(GENERATE OUTPUT launcher CONTENT "${MPIEXEC_EXECUTABLE}")
END
    (PATH=$prefix/lib/landeck/bin:$PATH && found_by_cmake "-DLANGUAGES=C;CXX") || exit 1
    found_by_cmake "-DMPI_HOME=$blank"
    found_by_cmake "-DCMAKE_PREFIX_PATH=$blank" "-DLANGUAGES=C;CXX"
    found_by_cmake "-DMPI_HOME=$staged/usr/lib/landeck"
fi

# As a script for another MPI would do it.
(
    PATH=$prefix/lib/landeck/bin:$PATH
    mpicc -Wall -Werror fronts/mpi/tests/c/ring.c -o "$prefix/ring"
    for starter in mpiexec mpirun; do
        timeout 150 $starter -n 2 -genv A 1 "$prefix/ring" : -np 1 "$prefix/ring" |
            grep -q "ring: 3 processes agree" || fail "a program of mpicc does not run under $starter"
    done
    # No code of an option that is refused is 0.
    ! mpiexec -frobnicate true 2>"$prefix/refused" || fail "mpiexec takes every option"
    grep -q -- "-frobnicate: there is no such option" "$prefix/refused" || fail "mpiexec refuses without a name"
    mpiexec -help | grep -q "^Usage: mpiexec" || fail "mpiexec -help does not help"
) || exit 1
"$prefix/ring" | grep -q "ring: 1 processes agree" || fail "a program of mpicc does not run alone"

# Removed, nothing is left; an installation beside others leaves theirs alone.
cargo xtask uninstall --prefix /usr --destdir "$staged"
left=$(find "$staged/usr" -mindepth 1)
[ -z "$left" ] || fail "uninstall leaves $left"
! cargo xtask uninstall --prefix /usr --destdir "$staged" 2>"$prefix/refused" || fail "uninstall removes what is not there"
grep -q "nothing is installed here" "$prefix/refused" || fail "uninstall does not say that nothing is there"
touch "$prefix/lib/own"
cargo xtask uninstall --prefix "$prefix"
[ -e "$prefix/lib/own" ] && [ ! -e "$prefix/bin/landeck" ] || fail "uninstall removes what is not its own, or leaves what is"
echo "install: every part is in its place and works, and goes when it is removed"
