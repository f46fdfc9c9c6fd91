//! The route of a collective call: the one decision, made once for each call.
//!
//! | route | for |
//! |---|---|
//! | [`Route::Inline`] | short contiguous data of a caller that waits at the board, while nothing else goes on |
//! | [`Route::PolledBoard`] | every other call over the board whose caller is the only thread and waits |
//! | [`Route::StartedBoard`] | calls over the board that go on in the table of operations |
//! | [`Route::Messages`] | plans over messages, which always go on in the table |
//!
//! All members agree on board or messages, because they ask the same table with the same facts. Among the routes over
//! the board each member picks its own: all of them write the same words there.

use landeck_collectives::{BoardStyle, Way};

use crate::inline::InlineCollective;

/// The route of one call.
pub(crate) enum Route<'i, 'a> {
    /// The caller polls the pre-bound steps for short data.
    Inline {
        /// The form of the call that it polls.
        inline: &'i mut InlineCollective<'a>,
        /// How the members meet at the board.
        style: BoardStyle,
    },
    /// The caller polls the plan's steps at the board.
    PolledBoard(BoardStyle),
    /// The plan's steps at the board are walked whenever the process makes progress.
    StartedBoard(BoardStyle),
    /// The plan's messages are sent and received whenever the process makes progress.
    Messages(Way),
}

impl Route<'_, '_> {
    /// The way of the call, for one that goes on in the table of operations.
    pub(crate) fn way(self) -> Way {
        match self {
            Self::Inline { style, .. } | Self::PolledBoard(style) | Self::StartedBoard(style) => {
                Way::Board(style)
            }
            Self::Messages(way) => way,
        }
    }
}

/// The caller, as far as it can poll the board itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polling {
    /// It waits for the operation, and is the only thread of its process.
    Alone,
    /// It waits for the operation, and has the turn among the threads of its process.
    WithTurn,
    /// It does not wait, or another thread has the turn.
    Never,
}

/// The circumstances of a call at this member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    /// The caller, as far as it can poll.
    pub(crate) polling: Polling,
    /// No other operation goes on in the table.
    pub(crate) is_idle: bool,
    /// The group has a board.
    pub(crate) has_board: bool,
    /// The members share processors.
    pub(crate) is_oversubscribed: bool,
    /// Bytes that a member may have on the board.
    pub(crate) board_bytes: u64,
}

/// Decides the route of a call that takes this way. The call has an inline form if its data are short.
#[inline(always)]
pub(crate) fn decide<'i, 'a>(
    way: &Way,
    inline: Option<&'i mut InlineCollective<'a>>,
    fits_board_call: bool,
    here: Circumstances,
) -> Route<'i, 'a> {
    let Way::Board(style) = *way else { return Route::Messages(way.clone()) };
    let polls = here.polling != Polling::Never;
    match inline {
        Some(inline)
            if polls
                && here.is_idle
                && here.has_board
                && inline.has_style(style)
                && inline.fits(here.board_bytes, here.is_oversubscribed) =>
        {
            Route::Inline { inline, style }
        }
        _ if here.polling == Polling::Alone && fits_board_call => Route::PolledBoard(style),
        _ => Route::StartedBoard(style),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use landeck_channel::Peer;
    use landeck_collectives::Operation;
    use landeck_collectives::architecture::Flat;
    use landeck_memory::Buffer;

    use super::*;
    use crate::identity::GroupRef;

    /// The name of a route.
    fn name(route: &Route<'_, '_>) -> &'static str {
        match route {
            Route::Inline { .. } => "inline",
            Route::PolledBoard(_) => "polled board",
            Route::StartedBoard(_) => "started board",
            Route::Messages(_) => "messages",
        }
    }

    /// The route of an allreduce of so many bytes in a group of two.
    fn route(bytes: usize, way: &Way, fits_board_call: bool, here: Circumstances) -> &'static str {
        let mut memory = vec![0u8; bytes];
        // SAFETY: nobody reads or writes the data: the operation never begins.
        let data = unsafe { Buffer::of_mut(&mut memory) };
        let members: Arc<[Peer]> = [Peer(0), Peer(1)].into();
        let group = GroupRef { context: 0, members: &members, rank: 0 };
        let mut inline = InlineCollective::new(Operation::AllReduce, 0, data, data, None, group);
        name(&decide(way, inline.as_mut(), fits_board_call, here))
    }

    const BOARD: Way = Way::Board(BoardStyle::Each);

    /// A caller that is alone and waits, in a group with a board, while nothing else goes on.
    const ALONE: Circumstances = Circumstances {
        polling: Polling::Alone,
        is_idle: true,
        has_board: true,
        is_oversubscribed: false,
        board_bytes: 1 << 20,
    };

    #[test]
    fn short_data_of_a_caller_that_polls_go_inline() {
        let with_turn = Circumstances { polling: Polling::WithTurn, ..ALONE };
        assert_eq!(route(8, &BOARD, true, ALONE), "inline");
        assert_eq!(route(8, &BOARD, true, with_turn), "inline");
        assert_eq!(route(8, &BOARD, false, ALONE), "inline", "no plan is asked for");
    }

    #[test]
    fn short_data_take_a_plan_while_something_else_goes_on_or_without_a_board() {
        let busy = Circumstances { is_idle: false, ..ALONE };
        let no_board = Circumstances { has_board: false, ..ALONE };
        assert_eq!(route(8, &BOARD, true, busy), "polled board");
        assert_eq!(route(8, &BOARD, true, no_board), "polled board", "where it finds none");
        let busy = Circumstances { polling: Polling::WithTurn, ..busy };
        assert_eq!(route(8, &BOARD, true, busy), "started board");
    }

    #[test]
    fn a_result_that_one_member_makes_for_all_is_inline_only_where_it_has_room() {
        let together = Way::Board(BoardStyle::Together);
        assert_eq!(route(8, &together, true, ALONE), "inline");
        assert_eq!(route(8192, &together, true, ALONE), "polled board");
        assert_eq!(route(8192, &BOARD, true, ALONE), "inline");
    }

    #[test]
    fn long_data_are_polled_by_the_only_thread_and_go_on_in_the_table_otherwise() {
        let long = 1 << 20;
        assert_eq!(route(long, &BOARD, true, ALONE), "polled board");
        assert_eq!(route(long, &BOARD, false, ALONE), "started board");
        for polling in [Polling::WithTurn, Polling::Never] {
            let here = Circumstances { polling, ..ALONE };
            assert_eq!(route(long, &BOARD, true, here), "started board");
        }
    }

    #[test]
    fn a_caller_that_does_not_wait_starts_its_call() {
        let here = Circumstances { polling: Polling::Never, ..ALONE };
        assert_eq!(route(8, &BOARD, true, here), "started board");
    }

    #[test]
    fn a_way_over_messages_is_taken_whatever_else_is_so() {
        let way = Way::by(Flat);
        for polling in [Polling::Alone, Polling::WithTurn, Polling::Never] {
            let here = Circumstances { polling, ..ALONE };
            assert_eq!(route(8, &way, true, here), "messages");
        }
        let taken = decide(&way, None, true, ALONE).way();
        assert_eq!(taken.to_string(), way.to_string());
    }
}
