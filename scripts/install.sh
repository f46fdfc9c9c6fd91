#!/bin/sh
# Builds what is installed and runs `xtask install` or `xtask uninstall`. Under sudo the compiler
# runs as the user who called it. Called by `make install` and
# `make uninstall`:
#
#     scripts/install.sh install --as-built --prefix PREFIX
set -eu
cd "$(dirname "$0")/.."

as_user() {
    if [ "$(id -u)" = 0 ] && [ -n "${SUDO_USER:-}" ] && [ "$SUDO_USER" != root ]; then
        sudo -H -u "$SUDO_USER" "$@"
    else
        "$@"
    fi
}

case $1 in
    install) as_user scripts/bootstrap.sh run cargo xtask build ;;
    uninstall) as_user scripts/bootstrap.sh run cargo build --quiet --package xtask ;;
esac
exec "${CARGO_TARGET_DIR:-target}/debug/xtask" "$@"
