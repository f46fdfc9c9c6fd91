#!/bin/sh
# The first parallel program: builds everything, computes the heat equation on 4 processes and again
# on 1, and checks that both got the same, bit for bit. Called by `make run`; needs cargo on the PATH.
#
#     SIZE=1024 STEPS=5000 PROCESSES=4 make run
set -eu
cd "$(dirname "$0")/.."

size=${SIZE:-1024}
steps=${STEPS:-5000}
processes=${PROCESSES:-4}
results=out

say() { printf '\n==> %s\n' "$*"; }

heat() {
    target/release/landeck run -n "$1" target/release/heat --size "$size" --steps "$steps" \
        --output "$results/heat-$1.png" --checksum-file "$results/heat-$1.sum"
}

say "Building the launcher and the examples (cargo build --release)"
cargo build --release --package landeck-launcher --package landeck-examples

say "Heat equation, size $size, $steps steps, on $processes processes"
heat "$processes"

say "The same on 1 process, to compare"
heat 1

if ! cmp -s "$results/heat-$processes.sum" "$results/heat-1.sum"; then
    echo "The results differ: $results/heat-$processes.sum and $results/heat-1.sum." >&2
    echo "Both runs must give the same bits. Please report this with the two files." >&2
    exit 1
fi
say "Both runs gave the same result, bit for bit. Look at it: $results/heat-$processes.png"
