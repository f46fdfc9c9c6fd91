//! A study: an operation simulated with several architectures, along the sizes of data or the numbers of processes.

use landeck_collectives::architecture::Butterfly;
use landeck_collectives::{Group, Operation, Preset, Task, Way};
use landeck_simulator::{
    Calls, Faults, Placement, Platform, Setting, SimulationError, SimulationProgress, Work, run,
};

use super::meter::Meter;

/// The longest time of a batch, so that all sizes are measured within the time of one job.
const BATCH_MAX_US: f64 = 30_000.0;

/// An architecture, with the number of clusters that the user asked for.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) preset: Preset,
    pub(crate) clusters: Option<u32>,
    /// Its name in tables and pictures.
    pub(crate) name: String,
}

impl Series {
    pub(crate) fn new(preset: Preset, clusters: Option<u32>) -> Self {
        let architecture = preset.to_string();
        let name = match clusters {
            Some(clusters) if has_clusters(&architecture) => format!("{architecture}, {clusters}"),
            _ => architecture,
        };
        Self { preset, clusters, name }
    }
}

/// Whether an architecture uses the clusters of its group.
pub(crate) fn has_clusters(architecture: &str) -> bool {
    let name = architecture.split([':', '+']).next().unwrap_or_default();
    matches!(name, "pipeline" | "daisy" | "hypercube" | "hierarchy")
}

/// The axis of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Along {
    /// Sizes of data in bytes, with this many processes.
    Sizes(u32),
    /// Numbers of processes, with data of this many bytes.
    Processes(u64),
}

/// The common settings of all studies of a call.
pub(crate) struct Ground<'a> {
    pub(crate) task: Task,
    pub(crate) platform: &'a Platform,
    pub(crate) placement: Placement,
    pub(crate) calls: Calls,
    pub(crate) faults: &'a Faults,
    /// Runs of each time, with different seeds; [`middle`] counts.
    pub(crate) launches: u32,
}

/// A study and its results.
pub(crate) struct Study {
    pub(crate) title: String,
    pub(crate) along: Along,
    pub(crate) series: Vec<Series>,
    /// The places on the axis.
    pub(crate) places: Vec<u64>,
    /// The times in microseconds, by series and place; none where there is no such group.
    pub(crate) times_us: Vec<Vec<Option<f64>>>,
}

impl Study {
    /// A study without results.
    pub(crate) fn new(title: String, along: Along, series: Vec<Series>, places: Vec<u64>) -> Self {
        Self { title, along, series, places, times_us: Vec::new() }
    }

    /// The number of runs of this study.
    pub(crate) fn runs(&self) -> usize {
        self.series.len() * self.places.len()
    }

    /// Simulates all places of all series.
    pub(crate) fn simulate(
        &mut self,
        ground: &Ground<'_>,
        meter: &mut Meter,
    ) -> Result<(), SimulationError> {
        for series in &self.series {
            let mut times_us = Vec::with_capacity(self.places.len());
            for &place in &self.places {
                let (processes, bytes) = match self.along {
                    Along::Sizes(processes) => (processes, place),
                    Along::Processes(bytes) => (place as u32, bytes),
                };
                times_us.push(ground.time_us(series, processes, bytes, meter)?);
            }
            self.times_us.push(times_us);
        }
        Ok(())
    }

    /// The mean time of a series over its places.
    pub(crate) fn mean_us(&self, series: usize) -> Option<f64> {
        let times: Vec<f64> = self.times_us.get(series)?.iter().flatten().copied().collect();
        (!times.is_empty()).then(|| times.iter().sum::<f64>() / times.len() as f64)
    }
}

/// The time that counts of several launches: the mean of their middle half. The order of processes on a processor
/// differs between launches and makes some take half as long again. A median would pick one kind by chance, and the
/// largest are disturbances.
pub(crate) fn middle(times_us: &[f64]) -> Option<f64> {
    let counted = middle_half(times_us);
    (!counted.is_empty()).then(|| counted.iter().sum::<f64>() / counted.len() as f64)
}

/// The middle half in ascending order.
pub(crate) fn middle_half(times_us: &[f64]) -> Vec<f64> {
    let mut times_us = times_us.to_vec();
    times_us.sort_by(f64::total_cmp);
    let aside = times_us.len() / 4;
    times_us[aside..times_us.len() - aside].to_vec()
}

impl Ground<'_> {
    /// The default number of clusters: the hosts.
    pub(crate) fn usual_clusters(&self, processes: u32) -> u32 {
        let per_host = match (self.placement, &self.platform.network) {
            (Placement::PerHost(per_host), _) => per_host.max(1),
            (Placement::Spread, _) => return processes.min(self.platform.hosts()),
            (Placement::Usual, Some(_)) => self.platform.host.processors,
            (Placement::Usual, None) => processes,
        };
        processes.div_ceil(per_host.max(1)).max(1)
    }

    /// The number of clusters of a series.
    pub(crate) fn clusters_of(&self, series: &Series, processes: u32) -> u32 {
        series.clusters.unwrap_or_else(|| self.usual_clusters(processes))
    }

    /// The group of a series; none if it has more clusters than members.
    pub(crate) fn group(&self, series: &Series, processes: u32) -> Option<Group> {
        let clusters = self.clusters_of(series, processes);
        if clusters > processes {
            return None;
        }
        Group::divided(processes, clusters).ok()
    }

    /// Simulates the operation once for each launch; none if there is no such group.
    pub(crate) fn time_us(
        &self,
        series: &Series,
        processes: u32,
        bytes: u64,
        meter: &mut Meter,
    ) -> Result<Option<f64>, SimulationError> {
        let Some(group) = self.group(series, processes) else { return Ok(None) };
        let way = series.preset.way(self.task.operation);
        let order = series.preset.order(self.task.operation).unwrap_or(self.task.order);
        let task = Task { order, ..self.task };
        let work = Work { task: &task, way: &way, group: &group, bytes };
        let calls = self.calls_of(&work)?;
        let what = format!("{}, {processes} processes, {bytes} B", series.name);
        meter.within(0, 1, &what);
        let launches = self.launches.max(1);
        let mut times_us = Vec::with_capacity(launches as usize);
        for launch in 0..launches {
            let seed = self.faults.seed.wrapping_add(launch.into());
            let faults = Faults { seed, ..self.faults.clone() };
            let setting = Setting {
                placement: self.placement,
                calls,
                ..Setting::new(self.platform, &faults)
            };
            let mut tell = |SimulationProgress { done, all }| {
                meter.within(u64::from(launch) * all + done, u64::from(launches) * all, &what);
            };
            let report = run(&work, &setting, &mut tell)?;
            if !report.left().is_empty() {
                break;
            }
            times_us.push(report.time().us() - self.barrier_us(&work, &setting)?);
        }
        meter.next();
        Ok(middle(&times_us))
    }

    /// The time of the barrier that stands behind each call, if one does.
    fn barrier_us(&self, work: &Work<'_>, setting: &Setting<'_>) -> Result<f64, SimulationError> {
        let Calls::BeforeBarriers(calls) = setting.calls else { return Ok(0.0) };
        let (task, way) = (Task::new(Operation::Barrier), Way::by(Butterfly));
        let barrier = Work { task: &task, way: &way, bytes: 0, ..*work };
        let setting = Setting { calls: Calls::Repeated(calls), ..*setting };
        Ok(run(&barrier, &setting, &mut |_| {})?.time().us())
    }

    /// When the members call. In a measurement, long operations are called less often.
    fn calls_of(&self, work: &Work<'_>) -> Result<Calls, SimulationError> {
        let (Calls::Measured { calls: usual, .. }
        | Calls::Repeated(usual)
        | Calls::BeforeBarriers(usual)) = self.calls
        else {
            return Ok(self.calls);
        };
        if usual == 1 {
            return Ok(self.calls);
        }
        let faults = Faults { deaths: Vec::new(), ..self.faults.clone() };
        let setting = Setting { placement: self.placement, ..Setting::new(self.platform, &faults) };
        let call_us = run(work, &setting, &mut |_| {})?.time().us();
        let calls = calls_in_a_batch(usual, call_us);
        Ok(match self.calls {
            Calls::Measured { rounds, .. } => Calls::Measured { rounds, calls },
            Calls::Repeated(_) => Calls::Repeated(calls),
            Calls::BeforeBarriers(_) => Calls::BeforeBarriers(calls),
            Calls::AtOnce => Calls::AtOnce,
        })
    }

    /// The first sentence of headings.
    pub(crate) fn words(&self) -> String {
        let about = self.platform.about.trim_end_matches('.');
        format!("Simulated, not measured. Platform {}: {about}.", self.platform.name)
    }
}

/// The number of calls in a batch of an operation of this length: `usual`, or fewer within [`BATCH_MAX_US`].
pub(crate) fn calls_in_a_batch(usual: u32, call_us: f64) -> u32 {
    ((BATCH_MAX_US / call_us) as u32).clamp(1, usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_launches_the_middle_half_counts() {
        assert_eq!(middle(&[]), None);
        assert_eq!(middle(&[3.0]), Some(3.0));
        assert_eq!(middle(&[1.0, 2.0, 6.0]), Some(3.0), "of three all");
        assert_eq!(middle(&[900.0, 4.0, 2.0, 1.0]), Some(3.0));
    }
}
