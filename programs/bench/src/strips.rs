//! Strips along one axis: the median of each as a dot, its spread as a line, both named.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use crate::chart::{FAINT, INK, Scale, TOP, Unit, WIDTH, heading, text, white_page};
use crate::statistics::{Middle, short};

/// A picture of strips.
pub(crate) struct Strips {
    pub(crate) title: String,
    /// Below the title.
    pub(crate) note: String,
    pub(crate) unit: String,
    pub(crate) groups: Vec<StripGroup>,
}

/// Strips below a heading.
pub(crate) struct StripGroup {
    pub(crate) name: String,
    pub(crate) strips: Vec<Strip>,
}

/// One value, with its spread.
pub(crate) struct Strip {
    pub(crate) name: String,
    pub(crate) colour: RGBColor,
    pub(crate) spread: Middle,
}

impl Strips {
    pub(crate) fn draw(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        const STEP: i32 = 30;
        const NAMES: i32 = 330;
        let rows: usize = self.groups.iter().map(|group| group.strips.len() + 2).sum();
        let height = TOP + rows as i32 * STEP + 60;
        let area = white_page(path, height)?;
        heading(&area, &self.title, &self.note)?;
        let all = self.groups.iter().flat_map(|group| &group.strips);
        let spreads = all.flat_map(|strip| [strip.spread.min, strip.spread.max]);
        let scale = Scale::logarithmic(spreads, NAMES, WIDTH - 150, 1.3);
        let unit = Unit::of(&self.unit, scale.high);
        for value in scale.ticks() {
            let x = scale.at(value);
            area.draw(&PathElement::new(vec![(x, TOP), (x, height - 70)], FAINT))?;
            text(&area, &short(value * unit.factor), (x, height - 52), HPos::Center, INK)?;
        }
        text(
            &area,
            &unit.axis_name(),
            (i32::midpoint(NAMES, WIDTH - 150), height - 20),
            HPos::Center,
            INK,
        )?;
        let mut y = TOP;
        for group in &self.groups {
            y += STEP / 2;
            text(&area, &group.name, (24, y), HPos::Left, INK)?;
            y += STEP;
            for Strip { name, colour, spread } in &group.strips {
                text(&area, name, (NAMES - 24, y), HPos::Right, *colour)?;
                let ends = vec![(scale.at(spread.min), y), (scale.at(spread.max), y)];
                area.draw(&PathElement::new(ends, colour.stroke_width(2)))?;
                area.draw(&Circle::new((scale.at(spread.median), y), 6, colour.filled()))?;
                text(
                    &area,
                    &short(spread.median * unit.factor),
                    (scale.at(spread.max) + 14, y),
                    HPos::Left,
                    *colour,
                )?;
                y += STEP;
            }
            y += STEP / 2;
        }
        area.present()?;
        Ok(())
    }
}
