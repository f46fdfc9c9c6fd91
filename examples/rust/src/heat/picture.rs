//! The plate as a picture: a colour for every temperature, lines where it is the same, and the
//! borders of the blocks.

use std::error::Error;
use std::path::Path;

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::division::Division;
use super::plate::{COLDEST, Plate, WARMEST};

/// The content of the picture.
pub struct Picture<'a> {
    /// How the plate is divided.
    pub division: Division,
    /// The cells of the whole plate, row by row.
    pub cells: &'a [f64],
    /// A sentence that says what the picture shows.
    pub heading: String,
    /// Smaller, below the heading.
    pub below: String,
}

type Page<'a> = DrawingArea<BitMapBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;

const PAGE: (i32, i32) = (1200, 760);
/// Where the plate may lie on the page: left, top, right, bottom.
const ROOM: (i32, i32, i32, i32) = (110, 110, 1000, 670);
const INK: RGBColor = RGBColor(30, 30, 30);
const GREY: RGBColor = RGBColor(100, 100, 100);
const LETTER: i32 = 22;
/// A line of equal temperature every so many degrees.
const LINE_DEGREES: f64 = 10.0;

/// From the coldest to the warmest, evenly spaced: dark blue, white, dark red.
const COLOURS: [[f64; 3]; 9] = [
    [5.0, 48.0, 97.0],
    [33.0, 102.0, 172.0],
    [67.0, 147.0, 195.0],
    [146.0, 197.0, 222.0],
    [247.0, 247.0, 247.0],
    [244.0, 165.0, 130.0],
    [214.0, 96.0, 77.0],
    [178.0, 24.0, 43.0],
    [103.0, 0.0, 31.0],
];

impl Picture<'_> {
    /// Draws the picture into a PNG file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn draw(&self, path: &Path) -> Drawn {
        load_font()?;
        let page = BitMapBackend::new(path, (PAGE.0 as u32, PAGE.1 as u32)).into_drawing_area();
        page.fill(&WHITE)?;
        let frame = Frame::of(self.division.plate());
        self.draw_plate(&page, &frame)?;
        self.draw_borders(&page, &frame)?;
        self.draw_axes(&page, &frame)?;
        draw_scale(&page, &frame)?;
        text(&page, &self.heading, (24, 34), HPos::Left, LETTER * 5 / 4, INK)?;
        text(&page, &self.below, (24, 74), HPos::Left, LETTER, GREY)?;
        page.present()?;
        Ok(())
    }

    /// Every point takes the colour of the cell that lies there. Points where the next degree line
    /// is crossed are darker.
    fn draw_plate(&self, page: &Page<'_>, frame: &Frame) -> Drawn {
        let band = |x, y| (self.temperature_at(frame, x, y) / LINE_DEGREES).floor();
        for y in frame.top..frame.bottom {
            for x in frame.left..frame.right {
                let crosses = band(x, y) != band(x + 1, y) || band(x, y) != band(x, y + 1);
                let colour = colour_of(self.temperature_at(frame, x, y));
                let colour = if crosses { darker(colour) } else { colour };
                page.draw_pixel((x, y), &colour)?;
            }
        }
        Ok(())
    }

    fn temperature_at(&self, frame: &Frame, x: i32, y: i32) -> f64 {
        let Plate { rows, columns } = self.division.plate();
        let row = frame.cell(y - frame.top, frame.bottom - frame.top, rows);
        let column = frame.cell(x - frame.left, frame.right - frame.left, columns);
        self.cells[row * columns + column]
    }

    /// Dashed lines between the blocks, and the rank of each in its corner.
    fn draw_borders(&self, page: &Page<'_>, frame: &Frame) -> Drawn {
        let (down, across) = self.division.shape();
        if down * across == 1 {
            return Ok(());
        }
        for rank in 0..down * across {
            let part = self.division.part(rank);
            let (x, y) = (frame.x(part.columns.start), frame.y(part.rows.start));
            if part.columns.start > 0 {
                dashed(page, (x, y), (x, frame.y(part.rows.end)))?;
            }
            if part.rows.start > 0 {
                dashed(page, (x, y), (frame.x(part.columns.end), y))?;
            }
            let label = [(x + 6, y + 6), (x + 56 + 8 * rank.to_string().len() as i32, y + 28)];
            page.draw(&Rectangle::new(label, WHITE.mix(0.7).filled()))?;
            text(page, &format!("rank {rank}"), (x + 12, y + 18), HPos::Left, 17, INK)?;
        }
        Ok(())
    }

    fn draw_axes(&self, page: &Page<'_>, frame: &Frame) -> Drawn {
        let outline = Rectangle::new(
            [(frame.left - 1, frame.top - 1), (frame.right, frame.bottom)],
            INK.stroke_width(1),
        );
        page.draw(&outline)?;
        let Plate { rows, columns } = self.division.plate();
        for column in ticks(columns, frame.right - frame.left) {
            let x = frame.x(column);
            page.draw(&PathElement::new([(x, frame.bottom), (x, frame.bottom + 6)], INK))?;
            text(page, &column.to_string(), (x, frame.bottom + 20), HPos::Center, LETTER, INK)?;
        }
        for row in ticks(rows, frame.bottom - frame.top) {
            let y = frame.y(row);
            page.draw(&PathElement::new([(frame.left - 7, y), (frame.left - 1, y)], INK))?;
            text(page, &row.to_string(), (frame.left - 12, y), HPos::Right, LETTER, INK)?;
        }
        let middle = i32::midpoint(frame.left, frame.right);
        text(page, "column of cells", (middle, frame.bottom + 52), HPos::Center, LETTER, INK)?;
        let style = letters(LETTER, &INK).transform(FontTransform::Rotate270);
        let style = style.pos(Pos::new(HPos::Center, VPos::Center));
        let at = (frame.left - 80, i32::midpoint(frame.top, frame.bottom));
        page.draw(&Text::new("row of cells", at, style))?;
        Ok(())
    }
}

/// The bar that says which colour is which temperature.
fn draw_scale(page: &Page<'_>, frame: &Frame) -> Drawn {
    let (left, right) = (frame.right + 40, frame.right + 70);
    let share_at = |y: i32| f64::from(frame.bottom - y) / f64::from(frame.bottom - frame.top);
    for y in frame.top..frame.bottom {
        let colour = colour_of(COLDEST + share_at(y) * (WARMEST - COLDEST));
        page.draw(&PathElement::new([(left, y), (right, y)], colour))?;
    }
    let outline = [(left - 1, frame.top - 1), (right, frame.bottom)];
    page.draw(&Rectangle::new(outline, INK.stroke_width(1)))?;
    for step in 0..=5 {
        let share = f64::from(step) / 5.0;
        let y = frame.bottom - (share * f64::from(frame.bottom - frame.top)).round() as i32;
        let label = format!("{:.0} °C", COLDEST + share * (WARMEST - COLDEST));
        page.draw(&PathElement::new([(right, y), (right + 6, y)], INK))?;
        text(page, &label, (right + 14, y), HPos::Left, LETTER, INK)?;
    }
    Ok(())
}

/// Where the plate lies on the page.
struct Frame {
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
    plate: Plate,
}

impl Frame {
    /// As large as there is room for, with cells that are squares; in the middle of the room.
    fn of(plate: Plate) -> Self {
        let (left, top, right, bottom) = ROOM;
        let (rows, columns) = (plate.rows as f64, plate.columns as f64);
        let points = (f64::from(right - left) / columns).min(f64::from(bottom - top) / rows);
        let length = |cells: f64| ((cells * points).round() as i32).max(1);
        let (width, height) = (length(columns), length(rows));
        let left = left + (right - left - width) / 2;
        let top = top + (bottom - top - height) / 2;
        Self { left, top, right: left + width, bottom: top + height, plate }
    }

    /// Where a column begins.
    fn x(&self, column: usize) -> i32 {
        let width = (self.right - self.left) as usize;
        self.left + (width * column / self.plate.columns) as i32
    }

    /// Where a row begins.
    fn y(&self, row: usize) -> i32 {
        let height = (self.bottom - self.top) as usize;
        self.top + (height * row / self.plate.rows) as i32
    }

    /// Which of `cells` lies at a point; the last one beyond the end.
    fn cell(&self, point: i32, points: i32, cells: usize) -> usize {
        (point as usize * cells / points as usize).min(cells - 1)
    }
}

fn colour_of(temperature: f64) -> RGBColor {
    let share = ((temperature - COLDEST) / (WARMEST - COLDEST)).clamp(0.0, 1.0);
    let place = share * (COLOURS.len() - 1) as f64;
    let below = (place as usize).min(COLOURS.len() - 2);
    let weight = place - below as f64;
    let mix = |part: usize| {
        (COLOURS[below][part] * (1.0 - weight) + COLOURS[below + 1][part] * weight).round() as u8
    };
    RGBColor(mix(0), mix(1), mix(2))
}

fn darker(colour: RGBColor) -> RGBColor {
    let part = |value: u8| (f64::from(value) * 0.72) as u8;
    RGBColor(part(colour.0), part(colour.1), part(colour.2))
}

/// Round numbers from 0 to the end of an axis that is so many points long: none too close to the
/// next.
fn ticks(cells: usize, points: i32) -> Vec<usize> {
    const APART: f64 = 70.0;
    let cells_apart = APART * cells as f64 / f64::from(points);
    let power = 10f64.powf(cells_apart.max(1.0).log10().floor());
    let round = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    let step = round.into_iter().find(|step| *step >= cells_apart);
    (0..=cells).step_by(step.map_or(cells, |step| step as usize)).collect()
}

fn dashed(page: &Page<'_>, from: (i32, i32), to: (i32, i32)) -> Drawn {
    page.draw(&DashedPathElement::new([from, to], 6, 6, INK.stroke_width(1)))?;
    Ok(())
}

fn letters(size: i32, colour: &RGBColor) -> TextStyle<'_> {
    TextStyle::from(("sans-serif", size).into_font()).color(colour)
}

fn text(
    page: &Page<'_>,
    words: &str,
    at: (i32, i32),
    side: HPos,
    size: i32,
    colour: RGBColor,
) -> Drawn {
    let style = letters(size, &colour).pos(Pos::new(side, VPos::Center));
    page.draw(&Text::new(words.to_owned(), at, style))?;
    Ok(())
}

/// The font travels with the program: a machine without any draws the same pictures.
fn load_font() -> Drawn {
    let font = epaint_default_fonts::UBUNTU_LIGHT;
    plotters::style::register_font("sans-serif", FontStyle::Normal, font)
        .map_err(|_| "the font cannot be read".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_from_blue_over_white_to_red() {
        assert_eq!(colour_of(COLDEST), RGBColor(5, 48, 97));
        assert_eq!(colour_of(50.0), RGBColor(247, 247, 247));
        assert_eq!(colour_of(WARMEST), RGBColor(103, 0, 31));
        assert_eq!(colour_of(-7.0), colour_of(COLDEST));
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(ticks(512, 560), [0, 100, 200, 300, 400, 500]);
        assert_eq!(ticks(1024, 560), [0, 200, 400, 600, 800, 1000]);
        assert_eq!(ticks(200, 300), [0, 50, 100, 150, 200]);
        assert_eq!(ticks(3, 560), [0, 1, 2, 3]);
        assert_eq!(ticks(3, 1), [0]);
    }

    #[test]
    fn cells_are_squares_and_lie_in_the_room() {
        for (rows, columns) in [(512, 512), (10, 400), (400, 10), (1, 1), (20_000, 3)] {
            let frame = Frame::of(Plate { rows, columns });
            assert!(frame.left >= ROOM.0 && frame.right <= ROOM.2 && frame.bottom <= ROOM.3);
            assert_eq!(frame.x(columns), frame.right);
            assert_eq!(frame.y(rows), frame.bottom);
        }
    }
}
