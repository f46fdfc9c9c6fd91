//! Those whose messages between hosts are measured: Landeck at one of its paces, or a peer.

use std::path::PathBuf;
use std::process::Command;

use landeck::Incast;
use plotters::prelude::RGBColor;

use crate::candidate::{Candidate, Places};
use crate::cluster::Cluster;
use crate::figure::FigurePart;
use crate::over_hosts;
use crate::plot::colour;
use crate::problem::Problem;
use crate::report::present;

/// Landeck at a pace, or a peer.
#[derive(Clone, Debug)]
pub(crate) struct Paced {
    candidate: Candidate,
    /// Landeck's pace.
    pub(crate) pace: Option<String>,
}

/// A value of `--paces`.
///
/// # Errors
/// When no pace has this name.
pub(crate) fn pace(text: &str) -> Result<String, String> {
    let pace = Incast::from_words(text).map(|_| text.to_owned());
    pace.ok_or_else(|| Incast::WORDS.to_owned())
}

/// The name of Landeck at a pace, short enough for a picture.
pub(crate) fn name_of(pace: &str) -> String {
    format!("Landeck, {}", pace.strip_prefix("tokens:").unwrap_or(pace))
}

impl Paced {
    /// Landeck at these paces, and the peers with these names, as far as they are there.
    ///
    /// # Errors
    /// When nothing can be said about those who are not.
    pub(crate) fn all(
        paces: &[String],
        peers: &[String],
        places: &Places,
    ) -> Result<Vec<Self>, Problem> {
        let of =
            |pace: &String| Self { candidate: Candidate::LandeckMpi, pace: Some(pace.clone()) };
        let others = [Candidate::MpichThrottled, Candidate::OpenMpi, Candidate::IntelMpi];
        let is_wanted =
            |peer: &Candidate| peer.peer().is_some_and(|name| peers.iter().any(|p| p == name));
        let others = others.into_iter().filter(is_wanted);
        let all =
            paces.iter().map(of).chain(others.map(|candidate| Self { candidate, pace: None }));
        present(all, |one| Some((one.candidate, places.missing(one.candidate)?)))
    }

    /// The name in tables and pictures.
    pub(crate) fn name(&self) -> String {
        self.pace.as_deref().map_or_else(|| self.candidate.title().to_owned(), name_of)
    }

    /// The colour in pictures, and whether its line is thick.
    pub(crate) fn style(&self) -> (RGBColor, bool) {
        let Some(pace) = self.pace.as_deref() else { return (colour(self.candidate), false) };
        let colour = match pace {
            "none" => RGBColor(120, 120, 120),
            "calibrated" => RGBColor(70, 150, 220),
            "tokens" => RGBColor(60, 20, 110),
            "tokens:segmentation" => RGBColor(120, 80, 180),
            "tokens:reservation" => RGBColor(180, 140, 215),
            _ if pace.starts_with("credit") => RGBColor(0, 84, 166),
            _ => RGBColor(140, 190, 235),
        };
        (colour, true)
    }

    /// The command that starts `source`.c in the processes of a part.
    ///
    /// # Errors
    /// When the hosts were ended and cannot be made again.
    pub(crate) fn command(
        &self,
        cluster: &Cluster,
        places: &Places,
        part: &FigurePart,
        (source, arguments): (&str, &[String]),
    ) -> Result<Command, String> {
        let program: PathBuf =
            places.peers.join(format!("{source}.{}", self.candidate.peer().unwrap_or("abi")));
        let mut command =
            over_hosts::command(cluster, places, self.candidate, part, &program, arguments)?;
        if let Some(pace) = &self.pace {
            // Direct messages to the root, as in the paper of 1997.
            command.env("LANDECK_INCAST", pace).env("LANDECK_COLLECTIVES", "gather=flat");
        }
        Ok(command)
    }
}
