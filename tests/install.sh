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

cargo xtask install --prefix "$prefix"
cargo xtask install --prefix /usr --destdir "$staged"

for part in bin/landeck bin/mpicc_abi bin/mpicxx_abi lib/landeck/bin/mpicc lib/landeck/bin/mpicxx \
    lib/landeck/bin/mpiexec lib/landeck/bin/mpirun lib/pkgconfig/mpi_abi.pc lib/libmpi_abi.so.1 lib/libmpi_abi.so include/mpi.h lib/pkgconfig/landeck.pc \
    share/man/man1/landeck.1 share/man/man1/landeck-run.1 share/man/man1/landeck-why.1 \
    share/man/man1/mpicc_abi.1 share/man/man1/mpicxx_abi.1 share/man/man1/deckcc.1 share/man/man1/deckcxx.1 \
    lib/landeck/share/man/man1/mpiexec.1 lib/landeck/share/man/man1/mpirun.1 lib/landeck/share/man/man1/mpicc.1 \
    lib/libdeck.so.1 lib/libdeck.so include/deck.h lib/pkgconfig/deck.pc bin/deckcc bin/deckcxx \
    share/man/man3/deck_mbox_post.3 share/man/man7/deck.7 \
    share/bash-completion/completions/landeck share/zsh/site-functions/_landeck \
    share/fish/vendor_completions.d/landeck.fish \
    share/doc/landeck/README.md share/doc/landeck/LICENSE-MIT; do
    [ -s "$prefix/$part" ] || fail "$part is missing below PREFIX"
    [ -s "$staged/usr/$part" ] || fail "$part is missing below DESTDIR/usr"
done
[ -x "$prefix/bin/landeck" ] || fail "bin/landeck may not be executed"
grep -q '^prefix=/usr$' "$staged/usr/lib/pkgconfig/landeck.pc" || fail "landeck.pc names DESTDIR"
! grep -rq "$staged" "$staged" || fail "a staged file names DESTDIR"

for option in on-failure report-bindings output-dir; do
    # A manual page writes a hyphen as \-.
    sed 's/\\-/-/g' "$prefix/share/man/man1/landeck-run.1" | grep -q -- "--$option" ||
        fail "landeck-run.1 does not name --$option"
    grep -q -- "--$option" "$prefix/share/bash-completion/completions/landeck" ||
        fail "the completions do not name --$option"
done

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

# The same where the prefix has a blank: the flags are to be read as a shell reads them.
blank="$prefix/of mine"
cargo xtask install --prefix "$blank"
flags=$(PKG_CONFIG_PATH="$blank/lib/pkgconfig" pkg-config --cflags --libs mpi_abi)
eval "cc -Wall -Werror fronts/mpi/tests/c/ring.c -o \"\$blank/ring\" $flags"
timeout 150 "$blank/bin/landeck" run -n 2 "$blank/ring" | grep -q "ring: 2 processes agree" ||
    fail "what pkg-config says of a prefix with a blank makes no MPI program"
ldd "$blank/ring" | grep -qF "$blank/lib/libmpi_abi.so.1" || fail "a program of pkg-config does not find its library"

# What build systems ask the wrappers.
for ask in -show --showme -compile_info -link_info --showme:compile --showme:link; do
    "$prefix/bin/mpicc_abi" $ask | grep -qF -- "$prefix" || fail "mpicc_abi $ask does not say where Landeck is"
done
[ "$("$prefix/bin/mpicc_abi" --showme:libs)" = mpi_abi ] || fail "mpicc_abi --showme:libs names another library"
flags=$("$blank/bin/mpicxx_abi" -show -x c fronts/mpi/tests/c/ring.c -o "$blank/shown")
eval "$flags" && "$blank/shown" | grep -q "ring: 1 processes agree" || fail "what mpicxx_abi -show prints makes no MPI program"

# A project of CMake finds the compilers on the PATH, and the launcher.
if command -v cmake >/dev/null && command -v c++ >/dev/null; then
    mkdir "$prefix/project"
    cp fronts/mpi/tests/c/ring.c fronts/mpi/tests/c/throw.cpp fronts/mpi/tests/c/*.h "$prefix/project"
    cat >"$prefix/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.13)
project(ring C CXX)
find_package(MPI REQUIRED COMPONENTS C CXX)
add_executable(ring ring.c)
target_link_libraries(ring MPI::MPI_C)
add_executable(throw throw.cpp)
target_link_libraries(throw MPI::MPI_CXX)
file(GENERATE OUTPUT launcher CONTENT "${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG}")
END
    (
        PATH=$prefix/lib/landeck/bin:$PATH
        cmake -S "$prefix/project" -B "$prefix/project/built" && cmake --build "$prefix/project/built"
    ) >"$prefix/project/log" 2>&1 || { cat "$prefix/project/log"; fail "find_package(MPI) finds nothing that works"; }
    # shellcheck disable=SC2046
    timeout 150 $(cat "$prefix/project/built/launcher") 3 "$prefix/project/built/ring" |
        grep -q "ring: 3 processes agree" || fail "a program of a CMake project does not run"
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
echo "install: every part is in its place and works"
