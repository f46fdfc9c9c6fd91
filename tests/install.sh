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

for part in bin/landeck lib/libmpi_abi.so.1 lib/libmpi_abi.so include/mpi.h lib/pkgconfig/landeck.pc \
    share/man/man1/landeck.1 share/man/man1/landeck-run.1 \
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
LD_LIBRARY_PATH=$prefix/lib timeout 20 "$prefix/bin/landeck" run -n 2 "$prefix/hello" ||
    fail "a C program does not run under the installed launcher"
echo "install: every part is in its place and works"
