# What the scripts of foreign programs share; each reads this file with its first argument still in place:
#
#   NAME.sh FOLDER [ARGUMENT...]  FOLDER keeps what was downloaded and built, and has the product in FOLDER/prefix
#
# It gives: client (NAME), own (the folder of the scripts), folder, prefix, log (of the last command), landeck.
client=$(basename -- "$0" .sh)
own=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
folder=$(CDPATH= cd -- "$1" && pwd)
prefix=$folder/prefix
log=$folder/$client.log
landeck=$prefix/bin/landeck
[ -x "$prefix/bin/mpicc_abi" ] || {
    echo "$client: no installation in $prefix; cargo xtask $client makes it" >&2
    exit 1
}

# cannot TEXT: ends the script where the program cannot be had or built.
cannot() {
    tail -n 5 "$log" 2>/dev/null || true
    echo "$client: $*"
    exit 77
}

# The lines of NAME-left-out.txt without their reasons.
left_out() {
    sed -e 's/ *#.*//' -e '/^$/d' "$own/$client-left-out.txt"
}

# python_environment FOLDER: a Python of its own, where it is not there yet.
python_environment() {
    [ -x "$1/bin/pip" ] || python3 -m venv "$1" >"$log" 2>&1 || cannot "python3 -m venv does not work here"
}

# source_package NAME VERSION PIP: unpacks a source package of Python's index, unmodified.
source_package() {
    "$3" download --no-deps --no-binary "$1" --no-build-isolation -d "$folder" "$1==$2" >"$log" 2>&1 ||
        "$3" download --no-deps --no-binary "$1" -d "$folder" "$1==$2" >>"$log" 2>&1 ||
        cannot "its source package could not be downloaded; $log says why"
    tar -xzf "$folder/$1-$2.tar.gz" -C "$folder"
}
