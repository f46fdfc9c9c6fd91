//! `landeck top`: a live table of the processes of a job.

use super::rates::{Row, rows};
use super::{SeeingError, onlooker, pause};
use clap::Args;
use landeck_diagnosis::picture::{Doing, HostInPicture};
use landeck_diagnosis::{Names, Onlooker, Picture, Stored, report};
use landeck_host::report::decimal_size;
use landeck_host::report::duration;
use landeck_host::say::say;
use landeck_memory::{Operation, SlotState};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Alignment, Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row as TableRow, Table, TableState};
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The columns: heading, width, and whether they hold numbers.
const COLUMNS: [Column; 10] = [
    ("PROCESS", 13, false),
    ("PID", 8, true),
    ("STATE", 8, false),
    ("%CPU", 6, true),
    ("%WAIT", 6, true),
    ("OUT MSG/S", 10, true),
    ("OUT B/S", 9, true),
    ("IN MSG/S", 10, true),
    ("IN B/S", 9, true),
    ("WAITS FOR", 30, false),
];

/// The column behind the first one, if the job has several hosts.
const HOST: Column = ("HOST", 10, false);
/// The column before the last one, if the job has several hosts.
const UNSENT: Column = ("UNSENT", 7, true);

/// The columns that a narrow terminal has no room for, in this order.
const LEAST_FIRST: [&str; 6] = ["IN B/S", "OUT B/S", "IN MSG/S", "OUT MSG/S", "%CPU", "PID"];

type Column = (&'static str, u16, bool);

/// Watch the processes of a job.
///
/// A job on several hosts is shown whole on each of them.
///
/// %CPU: processor time; %WAIT: time in calls that waited for others; UNSENT: bytes for other hosts that they have not
/// taken, while the process waits. Keys: up, down, page up, page
/// down and home move, q leaves.
#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    /// The job: its name, or the first digits of its identity [default: the only one that runs]
    #[arg(value_name = "JOB")]
    job: Option<String>,
    /// Time between updates (seconds, or with a unit)
    #[arg(
        short = 'd',
        long,
        value_name = "TIME",
        value_parser = crate::values::time,
        allow_negative_numbers = true,
        default_value = "1"
    )]
    interval: Duration,
    /// Print one picture as text and exit; needs no terminal
    #[arg(long)]
    once: bool,
}

impl TopArguments {
    /// Shows the table.
    pub(crate) fn run(&self) -> Result<ExitCode, SeeingError> {
        let mut job = onlooker(self.job.as_deref())?;
        let first = job.take();
        if self.once {
            pause(self.interval);
            let now = job.take();
            let scene = Scene::of(&mut job, &first, &now);
            say(&scene.text())?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut terminal = ratatui::try_init().map_err(SeeingError::Terminal)?;
        let mut show =
            Show { job, interval: self.interval, before: first, table: TableState::default() };
        let ended = show.run(&mut terminal);
        ratatui::restore();
        let last = ended.map_err(SeeingError::Terminal)?;
        if let Some(last) = last {
            say(&format!("{last}\n"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The data that stay on a host; `None` if there are none.
fn stored_in_words(host: &HostInPicture) -> Option<String> {
    let Stored { messages, bytes, quota } = host.stored;
    let plural = if messages == 1 { "" } else { "s" };
    let (bytes, quota, name) = (decimal_size(bytes), decimal_size(quota), &host.name);
    let text = format!("{messages} message{plural} stored on {name}: {bytes} of {quota}");
    (messages != 0).then_some(text)
}

/// One moment of a job.
struct Scene {
    heading: String,
    verdict: String,
    is_stuck: bool,
    is_over: bool,
    names: Names,
    rows: Vec<Row>,
}

impl Scene {
    fn of(onlooker: &mut Onlooker, before: &Picture, now: &Picture) -> Self {
        let report = onlooker.report_on(before, now);
        let job = onlooker.facts();
        let alive = now.members.iter().filter(|member| member.record.state == SlotState::Alive);
        let heading = format!(
            "{} ({}), {} of {} processes alive, running for {}",
            job.name,
            job.id,
            alive.count(),
            now.members.len(),
            duration(job.age),
        );
        let lane = report.lanes().first().map(|lane| lane.text.clone());
        let stores = now.hosts.iter().filter_map(stored_in_words);
        let more = lane.iter().chain(report.missing_hosts()).cloned().chain(stores);
        let more = more.map(|text| format!(" {text}."));
        Self {
            heading,
            verdict: report.verdict().to_owned() + &more.collect::<String>(),
            is_stuck: !report.goes_on(),
            is_over: !now.is_alive(),
            names: now.names.clone(),
            rows: rows(before, now),
        }
    }

    fn columns(&self) -> Vec<Column> {
        let mut columns = COLUMNS.to_vec();
        if self.names.span_hosts() {
            columns.insert(COLUMNS.len() - 1, UNSENT);
            columns.insert(1, HOST);
        }
        columns
    }

    /// The columns that a terminal has room for, as places among all, with their widths: as wide as their cells. Those
    /// that matter least go first.
    fn fitting(&self, cells: &[Vec<String>], room: u16) -> Vec<(usize, u16)> {
        let columns = self.columns();
        let last = columns.len() - 1;
        let width = |at: usize| {
            let longest = cells.iter().map(|row| row[at].chars().count());
            let longest = longest.chain([columns[at].0.chars().count()]).max().unwrap_or(0);
            let most = if at == last { columns[at].1 } else { u16::MAX };
            u16::try_from(longest).unwrap_or(u16::MAX).min(most)
        };
        let mut fitting: Vec<(usize, u16)> = (0..=last).map(|at| (at, width(at))).collect();
        for name in LEAST_FIRST {
            let needed: u32 = fitting.iter().map(|(_, width)| u32::from(*width) + 1).sum();
            if needed <= u32::from(room) + 1 {
                break;
            }
            fitting.retain(|(at, _)| columns[*at].0 != name);
        }
        fitting
    }

    /// The cells of a row, one for each column.
    fn cells(&self, row: &Row) -> Vec<String> {
        let is_there =
            !matches!(row.doing, Doing::Left | Doing::Dead | Doing::Expected | Doing::Unseen);
        let number = |value: f64| if is_there { format!("{value:.0}") } else { String::new() };
        let bytes = |value: f64| if is_there { decimal_size(value as u64) } else { String::new() };
        let mut cells = vec![
            self.names.short(row.process),
            if row.pid == 0 { "-".to_owned() } else { row.pid.to_string() },
            row.doing.as_str().to_owned(),
            row.computing_percent.map_or_else(String::new, number),
            number(row.waiting_percent),
            number(row.sent.messages),
            bytes(row.sent.bytes),
            number(row.received.messages),
            bytes(row.received.bytes),
            if is_there { self.waits_for(row) } else { String::new() },
        ];
        if self.names.span_hosts() {
            let is_unsent = is_there && row.unsent_bytes > 0;
            let unsent = if is_unsent { bytes(row.unsent_bytes as f64) } else { String::new() };
            cells.insert(cells.len() - 1, unsent);
            cells.insert(1, self.names.host(row.process).to_owned());
        }
        cells
    }

    fn waits_for(&self, row: &Row) -> String {
        let wait = &row.wait;
        match (wait.operation, wait.peer) {
            (Operation::None, _) => String::new(),
            (operation, Some(peer)) => {
                format!("{}: {}", operation.as_str(), self.names.one(peer))
            }
            (Operation::Send | Operation::Receive | Operation::Probe, None) => {
                format!("{}: anybody", wait.operation.as_str())
            }
            (Operation::Collective, None) => report::call_name(wait),
            (operation, None) => operation.as_str().to_owned(),
        }
    }

    /// The scene as plain text.
    fn text(&self) -> String {
        let mut text = format!("{}\n{}\n", self.heading, self.verdict);
        let columns = self.columns();
        let mut line = |cells: Vec<String>| {
            let padded = cells.iter().zip(&columns).map(|(cell, (_, width, is_number))| {
                let width = usize::from(*width);
                if *is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
            });
            let whole = padded.collect::<Vec<_>>().join(" ");
            text += &format!("{}\n", whole.trim_end());
        };
        line(columns.iter().map(|(heading, ..)| (*heading).to_owned()).collect());
        self.rows.iter().for_each(|row| line(self.cells(row)));
        text
    }
}

/// The state of the table on the terminal.
struct Show {
    job: Onlooker,
    interval: Duration,
    before: Picture,
    table: TableState,
}

impl Show {
    /// Shows scenes until the user leaves or the job ends. Returns a last message.
    fn run(&mut self, terminal: &mut ratatui::DefaultTerminal) -> io::Result<Option<String>> {
        let mut scene = self.next_scene(Duration::from_millis(100));
        loop {
            terminal.draw(|frame| self.draw(frame, &scene))?;
            if scene.is_over {
                return Ok(Some(scene.verdict));
            }
            let until = Instant::now() + self.interval;
            while let Some(left) = until.checked_duration_since(Instant::now()) {
                if !event::poll(left)? {
                    break;
                }
                if self.leaves(&event::read()?, scene.rows.len()) {
                    return Ok(None);
                }
                terminal.draw(|frame| self.draw(frame, &scene))?;
            }
            scene = self.next_scene(Duration::ZERO);
        }
    }

    fn next_scene(&mut self, after: Duration) -> Scene {
        if !after.is_zero() {
            pause(after);
        }
        let now = self.job.take();
        let scene = Scene::of(&mut self.job, &self.before, &now);
        self.before = now;
        scene
    }

    /// Handles a key; true if it leaves.
    fn leaves(&mut self, event: &Event, rows: usize) -> bool {
        const PAGE: u16 = 20;
        let Event::Key(key) = event else { return false };
        if key.kind != KeyEventKind::Press {
            return false;
        }
        match key.code {
            _ if is_leaving(key) => return true,
            KeyCode::Down => self.table.scroll_down_by(1),
            KeyCode::Up => self.table.scroll_up_by(1),
            KeyCode::PageDown => self.table.scroll_down_by(PAGE),
            KeyCode::PageUp => self.table.scroll_up_by(PAGE),
            KeyCode::Home => self.table.select(None),
            _ => {}
        }
        let last = rows.saturating_sub(1);
        if self.table.selected().is_some_and(|selected| selected > last) {
            self.table.select(Some(last));
        }
        false
    }

    fn draw(&mut self, frame: &mut Frame<'_>, scene: &Scene) {
        let said = if scene.names.span_hosts() { 4 } else { 2 };
        let parts = [Constraint::Length(1), Constraint::Length(said), Constraint::Min(1)];
        let [heading, verdict, body] = Layout::vertical(parts).areas(frame.area());
        let bold = Style::default().add_modifier(Modifier::BOLD);
        frame.render_widget(Line::styled(scene.heading.as_str(), bold), heading);
        let colour = if scene.is_stuck { Color::Red } else { Color::Reset };
        let said =
            Paragraph::new(Span::styled(scene.verdict.as_str(), Style::default().fg(colour)));
        frame.render_widget(said.wrap(ratatui::widgets::Wrap { trim: true }), verdict);
        let aligned = |text: String, is_number: bool| {
            let side = if is_number { Alignment::Right } else { Alignment::Left };
            Cell::from(Line::from(text).alignment(side))
        };
        let columns = scene.columns();
        let cells: Vec<Vec<String>> = scene.rows.iter().map(|row| scene.cells(row)).collect();
        let fitting = scene.fitting(&cells, body.width);
        let cell = |text: &str, at: usize| aligned(text.to_owned(), columns[at].2);
        let headings = fitting.iter().map(|&(at, _)| cell(columns[at].0, at));
        let rows = scene.rows.iter().zip(&cells).map(|(row, cells)| {
            let cells = fitting.iter().map(|&(at, _)| cell(&cells[at], at));
            TableRow::new(cells).style(style_of(row.doing))
        });
        let last = columns.len() - 1;
        let widths = fitting.iter().map(|&(at, width)| match at == last {
            true => Constraint::Min(width),
            false => Constraint::Length(width),
        });
        let table = Table::new(rows, widths)
            .header(TableRow::new(headings).style(bold.add_modifier(Modifier::REVERSED)))
            .row_highlight_style(Style::default().add_modifier(Modifier::REVERSED));
        frame.render_stateful_widget(table, body, &mut self.table);
    }
}

/// Whether a key leaves the table.
pub(crate) fn is_leaving(key: &KeyEvent) -> bool {
    let is_interrupt =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    let leaves = matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) || is_interrupt;
    key.kind == KeyEventKind::Press && leaves
}

/// The style of a row; its words say it too, since colour alone must not.
fn style_of(doing: Doing) -> Style {
    match doing {
        Doing::Run => Style::default().fg(Color::Green),
        Doing::Stopped | Doing::Dead | Doing::Unseen => Style::default().fg(Color::Red),
        Doing::Left | Doing::Expected => Style::default().add_modifier(Modifier::DIM),
        Doing::Spin | Doing::Sleep | Doing::Wait => Style::default(),
    }
}
