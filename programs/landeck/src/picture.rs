//! SVG pictures in the look of STYLE.md.

use std::fmt::Write as _;

/// The width of the usual page.
pub(crate) const WIDTH: f64 = 1200.0;
/// The height of the usual page.
pub(crate) const HEIGHT: f64 = 760.0;
/// The middle of the first line below the title, and the distance from one to the next.
const NOTE_TOP: f64 = 68.0;
const NOTE_LINE: f64 = 22.0;
/// The most letters in a line of a note on the usual page.
const NOTE_LETTERS: f64 = 135.0;
/// The dashes of an edge.
const DASHES: &str = " stroke-dasharray=\"5 4\"";
/// The colour of words.
pub(crate) const INK: &str = "#1E1E1E";

/// The look of a box.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// The colour inside.
    pub(crate) fill: &'static str,
    /// The colour of the edge.
    pub(crate) edge: &'static str,
    /// The thickness of the edge.
    pub(crate) thickness: f64,
    /// The radius of the corners.
    pub(crate) radius: f64,
    /// Whether the edge is dashed.
    pub(crate) is_dashed: bool,
}

/// An SVG picture under construction.
pub(crate) struct Picture {
    text: String,
}

impl Picture {
    /// A page of the usual size.
    pub(crate) fn new(title: &str, note: &str) -> Self {
        Self::sized((WIDTH, HEIGHT), title, note)
    }

    /// A page of this width and height.
    pub(crate) fn sized((width, height): (f64, f64), title: &str, note: &str) -> Self {
        let mut picture = Self { text: String::new() };
        let _ = writeln!(
            picture.text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             font-family=\"Ubuntu, sans-serif\" font-weight=\"300\">\n\
             <rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#FFFFFF\"/>"
        );
        picture.words(title, (24.0, 38.0), "start", 27, INK);
        for (number, line) in note_lines(note, width).into_iter().enumerate() {
            let y = NOTE_TOP + NOTE_LINE * number as f64;
            picture.words(&line, (24.0, y), "start", 16, "#646464");
        }
        picture
    }

    /// Writes words whose middle height is at a place.
    pub(crate) fn words(
        &mut self,
        words: &str,
        (x, y): (f64, f64),
        anchor: &str,
        letter: u32,
        colour: &str,
    ) {
        let (words, y) = (escaped(words), y + f64::from(letter) * 0.35);
        let _ = writeln!(
            self.text,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{letter}\" text-anchor=\"{anchor}\" \
             fill=\"{colour}\">{words}</text>"
        );
    }

    /// Fills an area.
    pub(crate) fn rectangle(&mut self, (x, y): (f64, f64), width: f64, height: f64, colour: &str) {
        let _ = writeln!(
            self.text,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             fill=\"{colour}\"/>"
        );
    }

    /// Draws a box.
    pub(crate) fn frame(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), look: &Look) {
        let Look { fill, edge, thickness, radius, is_dashed } = *look;
        let dashes = if is_dashed { DASHES } else { "" };
        let _ = writeln!(
            self.text,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{radius:.1}\" \
             fill=\"{fill}\" stroke=\"{edge}\" stroke-width=\"{thickness}\"{dashes}/>"
        );
    }

    /// Draws a line without marks at its corners.
    pub(crate) fn wire(&mut self, corners: &[(f64, f64)], (colour, thickness): (&str, f64)) {
        let _ = writeln!(
            self.text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{thickness}\" \
             stroke-linejoin=\"round\"/>",
            points(corners)
        );
    }

    /// Draws a filled circle.
    pub(crate) fn dot(&mut self, (x, y): (f64, f64), radius: f64, colour: &str) {
        let _ = writeln!(
            self.text,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{colour}\"/>"
        );
    }

    /// Draws a line with a dot at each corner.
    pub(crate) fn line(&mut self, corners: &[(f64, f64)], colour: &str) {
        let _ = writeln!(
            self.text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\"/>",
            points(corners)
        );
        for &corner in corners {
            self.dot(corner, 4.0, colour);
        }
    }

    /// Draws a thin line from the end of a line to its name.
    pub(crate) fn lead(&mut self, (x, y): (f64, f64), (name_x, name_y): (f64, f64), colour: &str) {
        let _ = writeln!(
            self.text,
            "<line x1=\"{:.1}\" y1=\"{y:.1}\" x2=\"{name_x:.1}\" y2=\"{name_y:.1}\" stroke=\"{colour}\" \
             stroke-width=\"1\"/>",
            x + 4.0
        );
    }

    /// The whole SVG file.
    pub(crate) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

/// The lines of a note on a page of this width.
fn note_lines(note: &str, width: f64) -> Vec<String> {
    wrapped(note, (NOTE_LETTERS * width / WIDTH) as usize)
}

/// The lower edge of the title and the note on a page of this width.
pub(crate) fn bottom_of_note(note: &str, width: f64) -> f64 {
    NOTE_TOP + NOTE_LINE * note_lines(note, width).len() as f64 - NOTE_LINE / 2.0
}

/// The corners of a line as SVG writes them.
fn points(corners: &[(f64, f64)]) -> String {
    let points: Vec<String> = corners.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    points.join(" ")
}

/// The room that words need at this size of letters, in whichever font a viewer shows them.
pub(crate) fn width_of(words: &str, letter: u32) -> f64 {
    let width = |letter: char| match letter {
        'i' | 'j' | 'l' | 'f' | 't' | '.' | ',' | ':' | '|' | '/' | '(' | ')' | ' ' => 0.4,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 1.0,
        'A'..='Z' | '\u{2e80}'.. => 0.8,
        _ => 0.64,
    };
    words.chars().map(width).sum::<f64>() * f64::from(letter)
}

/// Escapes the letters that mean something in XML.
pub(crate) fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Breaks words into lines of at most this many letters.
fn wrapped(words: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + word.len() < most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_safe_in_a_picture() {
        assert_eq!(escaped("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;");
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
    }
}
