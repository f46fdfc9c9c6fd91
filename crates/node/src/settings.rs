//! The settings of a job: one table of what its user may ask for, by variables and by options of `landeck run`.
//!
//! The process that creates a job's segment reads them once and writes them there: `landeck run`, or the first process
//! if another launcher, or none, started the job. All processes read them from the segment, so their own environment
//! does not matter. `landeck run` takes them from its environment, then from `-x`, and last from its options.
//!
//! A further setting is a row of [`SETTINGS`], and the place that obeys it.

pub(crate) mod one_copy;
mod one_copy_probe;
pub(crate) mod paths;
pub mod tuning;

use std::env;
use std::ffi::OsStr;

use landeck_channel::incast::Incast;
use landeck_collectives::Settings;
use landeck_host::say::quoted;
use landeck_wire::stored::StoreSetting;
use landeck_wire::way::{OneCopy, PathWish};

use crate::settings::paths::Paths;

/// The variable that selects architectures for collective operations.
pub const COLLECTIVES: &str = "LANDECK_COLLECTIVES";
/// The variable that selects which members count as near: see [`Nearness`](landeck_collectives::Nearness).
pub const CLUSTERS: &str = "LANDECK_CLUSTERS";
/// The variable that makes members compare their calls: see [`World::checking`](crate::World::checking).
pub const CHECKING: &str = "LANDECK_CHECKING";
/// The variable that says over which path messages go to other hosts.
pub const PATH: &str = "LANDECK_PATH";
/// The variable with the most lanes of a process.
pub const LANES: &str = "LANDECK_LANES";
/// The variable that says how many senders of other hosts answer one receiver.
pub const INCAST: &str = "LANDECK_INCAST";
/// The variable that says where the data of long messages wait for their receivers.
pub const STORE: &str = "LANDECK_STORE";
/// The variable that says from which length on data are copied once.
pub const ONE_COPY: &str = "LANDECK_ONE_COPY";

/// A setting of a job.
#[derive(Clone, Copy, Debug)]
pub struct JobSetting {
    /// The environment variable.
    pub variable: &'static str,
    /// The effect and the values, for users.
    pub effect: &'static str,
    /// Writes a value into settings. The error says what is wanted.
    apply: fn(&str, &mut Settings) -> Result<(), String>,
}

/// All settings, in the order of the page for users.
pub const SETTINGS: [JobSetting; 8] = [
    JobSetting {
        variable: COLLECTIVES,
        effect: "the ways of collective operations, as --collectives",
        apply: |text, settings| {
            let asked = text.parse().map_err(in_words)?;
            settings.overrides = settings.overrides.clone().then(asked).map_err(in_words)?;
            Ok(())
        },
    },
    JobSetting {
        variable: CLUSTERS,
        effect: "the criterion for members close to each other, as --clusters: caches, hosts, sites or none",
        apply: |text, settings| {
            settings.nearness = text.parse().map_err(in_words)?;
            Ok(())
        },
    },
    JobSetting {
        variable: CHECKING,
        effect: "1: members of every collective operation compare counts, types and operations first, and a difference \
                 is an error; 0: they do not (default)",
        apply: |text, settings| {
            settings.is_checked = match text {
                "0" => false,
                "1" => true,
                _ => return Err("1 makes members compare their calls, 0 does not".into()),
            };
            Ok(())
        },
    },
    JobSetting {
        variable: PATH,
        effect: "the path of messages between hosts, as --path: auto, lane, relay or daemons",
        apply: |text, settings| {
            let wish = PathWish::from_name(text).ok_or("auto, lane, relay or daemons is wanted")?;
            change_paths(settings, |paths| paths.wish = wish);
            Ok(())
        },
    },
    JobSetting {
        variable: LANES,
        effect: "the most lanes of a process, beyond which messages go over relays; else half of its limit of open \
                 files, and at most 1024",
        apply: |text, settings| {
            let most = text.parse().ok().filter(|most| *most > 0);
            let most = Some(most.ok_or("a number from 1 on is wanted")?);
            change_paths(settings, |paths| paths.lanes_max = most);
            Ok(())
        },
    },
    JobSetting {
        variable: INCAST,
        effect: "the pace of many-to-one steps between hosts, as --incast: none, fixed:K, calibrated, credit, \
                 credit:BYTES or tokens",
        apply: |text, settings| {
            let wish = Incast::from_words(text).ok_or(Incast::WORDS)?;
            change_paths(settings, |paths| paths.incast = wish);
            Ok(())
        },
    },
    JobSetting {
        variable: STORE,
        effect: "where the data of long messages to other hosts wait for their receivers, as --store: receiver, sender, \
                 auto, least-loaded or the name of a host",
        apply: |text, settings| {
            let setting = StoreSetting::from_text(text);
            change_paths(settings, |paths| paths.store = setting);
            Ok(())
        },
    },
    JobSetting {
        variable: ONE_COPY,
        effect: "the length from which data on one host are copied once by the kernel, as --one-copy: auto, never or a \
                 number of bytes",
        apply: |text, settings| {
            settings.one_copy_from = match OneCopy::from_words(text).ok_or(OneCopy::WORDS)? {
                OneCopy::Auto => None,
                OneCopy::Never => Some(OneCopy::NEVER),
                OneCopy::From(bytes) => Some(bytes),
            };
            Ok(())
        },
    },
];

/// A setting has a value that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: it is {}; {wanted}", quoted(found))]
pub struct SettingError {
    /// The variable.
    pub variable: &'static str,
    /// Its value.
    pub found: String,
    /// The values that it can have, in words.
    pub wanted: String,
}

/// Returns the settings that the environment asks for, and then these variables in their order; others than settings
/// are ignored, and empty values ask for nothing. The figures of the host are the usual ones still:
/// [`tuning::with_figures`] adds those that are kept.
///
/// # Errors
/// [`SettingError`] for the first value that means nothing.
pub fn asked<'a>(
    more: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>,
) -> Result<Settings, SettingError> {
    let mut settings = Settings::default();
    for setting in &SETTINGS {
        setting.take(&env::var_os(setting.variable).unwrap_or_default(), &mut settings)?;
    }
    for (name, value) in more {
        if let Some(setting) = SETTINGS.iter().find(|setting| name == setting.variable) {
            setting.take(value, &mut settings)?;
        }
    }
    Ok(settings)
}

/// Returns where the data of long messages wait by these settings.
pub fn store(settings: &Settings) -> StoreSetting {
    Paths::of(settings).store
}

/// Checks a value of a variable; the error says what is wanted.
///
/// # Errors
/// If it means nothing, or if there is no setting of this name.
pub fn check(variable: &str, value: &str) -> Result<(), String> {
    let setting = SETTINGS.iter().find(|setting| setting.variable == variable);
    (setting.ok_or("there is no such setting")?.apply)(value, &mut Settings::default())
}

impl JobSetting {
    fn take(&self, value: &OsStr, settings: &mut Settings) -> Result<(), SettingError> {
        let (variable, found) = (self.variable, value.to_string_lossy());
        if found.is_empty() {
            return Ok(());
        }
        let wrong = |wanted| SettingError { variable, found: found.clone().into_owned(), wanted };
        (self.apply)(&found, settings).map_err(wrong)
    }
}

fn change_paths(settings: &mut Settings, change: impl FnOnce(&mut Paths)) {
    let mut paths = Paths::of(settings);
    change(&mut paths);
    settings.paths = paths.to_words();
}

fn in_words(error: impl ToString) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variable: &str, value: &str) -> Result<Settings, String> {
        let more =
            [(OsStr::new(variable), OsStr::new(value)), (OsStr::new("HOME"), OsStr::new("x"))];
        asked(more).map_err(|error| error.to_string())
    }

    #[test]
    fn a_wrong_value_is_named_with_those_that_are_wanted() {
        for (variable, value, wanted) in [
            (CHECKING, "maybe", "it is \"maybe\"; 1 makes members compare their calls, 0 does not"),
            (CLUSTERS, "cores", "it is \"cores\"; \"cores\" makes no clusters"),
            (COLLECTIVES, "star", "it is \"star\"; there is no architecture \"star\""),
            (PATH, "tcp", "it is \"tcp\"; auto, lane, relay or daemons is wanted"),
            (LANES, "0", "it is \"0\"; a number from 1 on is wanted"),
            (LANES, "many", "it is \"many\"; a number from 1 on is wanted"),
            (
                INCAST,
                "fixed",
                "it is \"fixed\"; none, fixed:K, calibrated, credit, credit:BYTES (32K at least)",
            ),
            (
                ONE_COPY,
                "always",
                "it is \"always\"; auto, never or a number of bytes (4K at least) is wanted",
            ),
        ] {
            let error = of(variable, value).unwrap_err();
            assert!(error.starts_with(&format!("{variable}: {wanted}")), "{error}");
            assert_eq!(
                format!("{variable}: it is {value:?}; {}", check(variable, value).unwrap_err()),
                error
            );
            assert_eq!(of(variable, "").unwrap(), asked([]).unwrap(), "nothing is asked for");
        }
    }

    #[test]
    fn values_reach_the_words_of_a_segment() {
        let read = |settings: &Settings| Settings::from_words(&settings.to_words());
        let paths = |value: (&str, &str)| Paths::of(&read(&of(value.0, value.1).unwrap()));
        assert_eq!(paths((PATH, "relay")), Paths { wish: PathWish::Relay, ..Paths::default() });
        assert_eq!(paths((LANES, "2")), Paths { lanes_max: Some(2), ..Paths::default() });
        assert_eq!(paths((INCAST, "fixed:4")).incast, Incast::Fixed(4));
        assert!(paths((STORE, "n7")).store.names("n7"));
        assert_eq!(read(&of(ONE_COPY, "64K").unwrap()).one_copy_from, Some(65_536));
        assert_eq!(read(&of(ONE_COPY, "never").unwrap()).one_copy_from, Some(OneCopy::NEVER));
        assert!(read(&of(CHECKING, "1").unwrap()).is_checked);
        let both = [(COLLECTIVES, "flat"), (COLLECTIVES, "scan=daisy")];
        let both = both.map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
        assert!(
            asked(both).unwrap().overrides.to_string().ends_with("flat,scan=daisy"),
            "one behind the other"
        );
    }
}
