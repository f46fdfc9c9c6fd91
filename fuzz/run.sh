#!/bin/sh
# Builds the fuzzers with the stable compiler and runs each for some seconds:
#
#     fuzz/run.sh SECONDS [TARGET]
#
# FUZZ_RUNS in the environment is a number of runs that suffices, however few seconds they took, and FUZZ_PROFILE the
# profile of fuzz/Cargo.toml that is built: release, or short, which is built in a third of the time.
#
# The flags are those of libFuzzer's coverage; stable rustc passes them to LLVM. What a fuzzer
# finds stays in fuzz/artifacts/TARGET; `fuzz/target/.../TARGET FILE` shows it again. Ends with
# "N passed, N failed", a target counting as one.
set -eu
cd "$(dirname "$0")"

seconds=${1:-10}
only=${2:-}
enough=${FUZZ_RUNS:--1}
profile=${FUZZ_PROFILE:-release}
host=$(rustc -vV | sed -n 's/^host: //p')

coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing"

# With a target named, the flags do not reach build scripts, which libFuzzer's runtime is not in.
RUSTFLAGS="$coverage" CARGO_TARGET_DIR=target cargo build --quiet --profile "$profile" --target "$host"

# Runs one target, and says in a line what came of it.
fuzz() {
    mkdir -p "corpus/$1" "artifacts/$1"
    if timeout $((seconds + 60)) "target/$host/$profile/$1" "corpus/$1" \
        -max_total_time="$seconds" -runs="$enough" -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
        -artifact_prefix="artifacts/$1/" </dev/null 2>"artifacts/$1/log"; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "artifacts/$1/log")
        echo "fuzz $1 ... ok ($runs runs in at most $seconds s)"
    else
        tail -n 40 "artifacts/$1/log"
        echo "fuzz $1 ... FAILED (log and input: fuzz/artifacts/$1)"
        return 1
    fi
}

# Waits for the targets that run, and counts them.
count() {
    for one in $running; do
        if wait "$one"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    done
    running=""
}

# A target has one thread, so as many run at a time as there are processors.
passed=0
failed=0
running=""
for source in targets/*.rs; do
    name=$(basename "$source" .rs)
    [ -z "$only" ] || [ "$only" = "$name" ] || continue
    fuzz "$name" &
    running="$running $!"
    [ "$(echo "$running" | wc -w)" -lt "$(nproc)" ] || count
done
count
echo "fuzz: $passed passed, $failed failed"
[ "$failed" = 0 ]
