//! The options that say the same as variables of the [settings](landeck::settings).

use std::ffi::OsStr;

use landeck::settings::{self, SettingError};
use landeck_collectives::Settings;

/// The variables for which options stand, with their values. They win over the environment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes(Vec<(&'static str, String)>);

impl Wishes {
    /// The wishes of these options; those that are not given ask for nothing.
    pub(crate) fn of<'a>(
        options: impl IntoIterator<Item = (&'static str, &'a Option<String>)>,
    ) -> Self {
        let given = |(variable, value): (_, &Option<String>)| Some((variable, value.clone()?));
        Self(options.into_iter().filter_map(given).collect())
    }

    /// The settings that the environment asks for, then these variables, and then the options.
    pub(crate) fn settings<'a>(
        &'a self,
        variables: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>,
    ) -> Result<Settings, SettingError> {
        let options = self.0.iter().map(|(name, value)| (OsStr::new(*name), OsStr::new(value)));
        settings::asked(variables.into_iter().chain(options))
    }
}
