#!/bin/sh
# MPI programs under Slurm's srun, by PMI-1 and by PMIx: a cluster of this host alone is started for the test, and
# ended with it. Needs slurmctld, slurmd and munged, and root; by PMIx also libpmix-dev, whose link Slurm's plugin follows.
set -eu
cd "$(dirname "$0")/.."

skip() {
    echo "$*"
    exit 77
}

[ "$(id -u)" = 0 ] || skip "only root can start Slurm's daemons"
for tool in slurmctld slurmd srun munged runuser; do
    command -v $tool >/dev/null || skip "there is no $tool here (slurm-wlm, munge)"
done

folder=$(mktemp -d)
chmod 755 "$folder"
host=$(hostname -s)
daemons=
end_all() {
    for daemon in $daemons; do kill "$daemon" 2>/dev/null || true; done
    [ ! -s "$folder/munge/munged.pid" ] || kill "$(cat "$folder/munge/munged.pid")" 2>/dev/null || true
    wait
    rm -rf "$folder"
}
trap end_all EXIT
trap 'exit 1' TERM INT

fail() {
    echo "slurm: $*" >&2
    tail -n 20 "$folder"/*.log >&2 2>/dev/null || true
    exit 1
}

# Who is who: a key for this cluster alone.
mkdir "$folder/munge" "$folder/state" "$folder/spool"
dd if=/dev/urandom of="$folder/munge/key" bs=128 count=1 2>/dev/null
chmod 700 "$folder/munge"
chmod 600 "$folder/munge/key"
chown -R munge "$folder/munge"
chmod 755 "$folder/munge"
runuser -u munge -- munged --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
    --pid-file="$folder/munge/munged.pid" --log-file="$folder/munge/munged.log" --seed-file="$folder/munge/seed" ||
    fail "munged does not start"

# Ports that follow from the number of this process, so that two of these tests can run.
port=$((20000 + $$ % 20000))
cat >"$folder/slurm.conf" <<END
ClusterName=landeck
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CryptoType=crypto/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=8 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
END
export SLURM_CONF="$folder/slurm.conf"
slurmctld -D -f "$SLURM_CONF" >"$folder/controller.log" 2>&1 &
daemons=$!
slurmd -D -f "$SLURM_CONF" >"$folder/node.log" 2>&1 &
daemons="$daemons $!"
tries=0
until sinfo -h -o %T 2>/dev/null | grep -q idle; do
    tries=$((tries + 1))
    [ $tries -lt 240 ] || fail "the cluster does not come up"
    sleep 0.5
done

cargo xtask install --profile dev --prefix "$folder/prefix"
for name in hello ring allreduce threads killed; do
    "$folder/prefix/bin/mpicc_abi" -O1 -pthread -Ifronts/mpi/tests/c "fronts/mpi/tests/c/$name.c" -o "$folder/$name"
done
export LD_LIBRARY_PATH="$folder/prefix/lib"
cd "$folder"

# under MODE: programs that agree, one that aborts, one that is killed.
under() {
    for processes in 1 3 8; do
        for name in hello ring allreduce threads; do
            timeout 200 srun --mpi="$1" -n $processes ./$name >output 2>&1 || fail "$name, n = $processes, $1: $(cat output)"
            grep -q "$name: $processes processes agree" output || fail "$name, n = $processes, $1: $(cat output)"
        done
    done
    for way in abort kill; do
        status=0
        timeout 200 srun --mpi="$1" -n 3 ./killed 1 $way >output 2>&1 || status=$?
        # With 124 it was waited for in vain.
        [ $status != 0 ] && [ $status != 124 ] || fail "nobody hears of a process's end ($way, $1)"
        ! grep -q "in vain" output || fail "somebody waited to the end ($way, $1)"
    done
    tried="$tried $1"
}

tried=
under pmi2
timeout 200 srun --mpi=pmix -n 1 true 2>plugin.log && under pmix ||
    echo "srun --mpi=pmix does not work here: $(head -n 1 plugin.log)"
status=0
timeout 200 srun --mpi=none -n 2 ./hello >output 2>&1 || status=$?
[ $status != 0 ] && [ $status != 124 ] || fail "srun --mpi=none makes two jobs of one"
echo "slurm: programs run under srun with$tried"
