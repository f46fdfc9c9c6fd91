//! `landeck vm top` and `vm status --watch`: the state of a machine, again each second, until it ends or its user has seen
//! enough.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use landeck_host::say::{complain, heard, reader_is_gone};
use landeck_launch::machine::{MachineError, MachineStatus};
use landeck_launch::machine_call::MachineCall;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind};
use ratatui::widgets::Paragraph;

use super::VmError;
use crate::seeing::top::is_leaving;

/// The time between two looks.
const INTERVAL: Duration = Duration::from_secs(1);

/// Prints the state each second, until the machine ends or nobody reads any more.
///
/// # Errors
/// The machine does not answer; standard output accepts nothing.
pub(super) fn print(
    mut call: MachineCall,
    text: impl Fn(&MachineStatus) -> String,
) -> Result<(), VmError> {
    while let Some(status) = look(&mut call)? {
        let mut out = io::stdout().lock();
        let written = out.write_all(text(&status).as_bytes()).and_then(|()| out.flush());
        if written.as_ref().is_err_and(reader_is_gone) {
            return Ok(());
        }
        heard(written)?;
        call.wait(INTERVAL);
    }
    tell_end(&call);
    Ok(())
}

/// Shows the state on the terminal, until the machine ends or the user leaves.
///
/// # Errors
/// The machine does not answer; the terminal cannot be used.
pub(super) fn show(
    mut call: MachineCall,
    text: impl Fn(&MachineStatus) -> String,
) -> Result<(), VmError> {
    let mut terminal = ratatui::try_init().map_err(VmError::Terminal)?;
    let has_ended = show_on(&mut terminal, &mut call, &text);
    ratatui::restore();
    if has_ended? {
        tell_end(&call);
    }
    Ok(())
}

/// Shows the state on this terminal. Returns whether the machine has ended.
fn show_on(
    terminal: &mut ratatui::DefaultTerminal,
    call: &mut MachineCall,
    text: &impl Fn(&MachineStatus) -> String,
) -> Result<bool, VmError> {
    let mut first_line = 0;
    while let Some(status) = look(call)? {
        let text = text(&status);
        let last_line = u16::try_from(text.lines().count()).unwrap_or(u16::MAX).saturating_sub(1);
        let until = Instant::now() + INTERVAL;
        loop {
            first_line = last_line.min(first_line);
            let page = Paragraph::new(text.as_str()).scroll((first_line, 0));
            terminal
                .draw(|frame| frame.render_widget(page, frame.area()))
                .map_err(VmError::Terminal)?;
            let left = until.saturating_duration_since(Instant::now());
            if !event::poll(left).map_err(VmError::Terminal)? {
                break;
            }
            match event::read().map_err(VmError::Terminal)? {
                Event::Key(key) if is_leaving(&key) => return Ok(false),
                Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                    KeyCode::Down => first_line = first_line.saturating_add(1),
                    KeyCode::Up => first_line = first_line.saturating_sub(1),
                    _ => {}
                },
                _ => {}
            }
        }
    }
    Ok(true)
}

/// The state now; `None` if the machine has ended on this host.
fn look(call: &mut MachineCall) -> Result<Option<MachineStatus>, VmError> {
    match call.status() {
        Ok(status) => Ok(Some(status)),
        Err(MachineError::Silent { source, .. })
            if source.kind() == io::ErrorKind::ConnectionReset =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn tell_end(call: &MachineCall) {
    let name = call.name();
    complain(format_args!(
        "landeck: {name} has ended, or this host has left it: its daemon here is gone"
    ));
}
