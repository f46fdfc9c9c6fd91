//! Before an operation in checking mode: all members have come to the board, for the same.

use landeck_board::{Board, Came};
use landeck_memory::Bytes;

use crate::board::BoardError;
use crate::board::scan_scope::ScanScope;
use crate::call::check::Check;

/// The call of this member, to be compared with the calls of the others.
pub(crate) struct EntryCheck {
    number: u32,
    signature: u32,
    check: Check,
    has_come: bool,
    seen: u32,
}

impl EntryCheck {
    /// For the operation with this number on the board.
    pub(crate) fn new(number: u32, signature: u32, check: Check) -> Self {
        Self { number, signature, check, has_come: false, seen: 0 }
    }

    /// This member has come, with all that it lays down: others count on that, whatever is found.
    pub(crate) fn begin(&mut self) {
        self.has_come = true;
    }

    /// Whether it has.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_come
    }

    /// Comes without data, and looks at those who have come by now: whether all have.
    ///
    /// # Errors
    /// [`BoardError::Different`], [`BoardError::Disagrees`].
    pub(crate) fn poll(&mut self, board: &mut Board) -> Result<bool, BoardError> {
        if !self.has_come {
            if !board.has_room(self.number) {
                return Ok(false);
            }
            board.come(self.number, self.signature, self.check.word(), Bytes::EMPTY);
            board.wake();
            self.has_come = true;
        }
        while self.seen < board.size() {
            if self.seen != board.own() && !self.agrees(board, self.seen)? {
                return Ok(false);
            }
            self.seen += 1;
        }
        Ok(true)
    }

    /// Whether this member has come; for the same, then.
    fn agrees(&self, board: &Board, member: u32) -> Result<bool, BoardError> {
        match board.came(member, self.number, self.signature) {
            Came::NotYet => return Ok(false),
            Came::Otherwise(_) => return Err(BoardError::otherwise(board, member)),
            Came::Here => {}
        }
        let theirs = Check::of_word(board.check(member, self.number));
        match theirs == self.check {
            true => Ok(true),
            false => Err(BoardError::Disagrees { member, theirs, ours: self.check }),
        }
    }

    /// Why they can never all come.
    #[cold]
    pub(crate) fn verdict(&self, board: &Board, scope: ScanScope) -> Option<BoardError> {
        board.restate();
        if board.is_revoked() {
            return Some(BoardError::Revoked);
        }
        if let Some(difference) = board.out_of_step() {
            return Some(BoardError::Different(difference));
        }
        let looked_at = scope.members(board.size(), self.seen);
        looked_at.filter(|&member| member != board.own()).find_map(|member| {
            // First whether it is gone: what it did before that counts.
            let is_lost = board.is_gone(member) || board.refuses(member, self.number);
            match board.came(member, self.number, self.signature) {
                Came::Otherwise(_) => Some(BoardError::otherwise(board, member)),
                Came::NotYet if is_lost => Some(BoardError::Gone(member)),
                // A gone member gives no room any more, if its words were overwritten.
                Came::Here if !self.has_come && board.is_gone(member) => {
                    Some(BoardError::Gone(member))
                }
                _ => None,
            }
        })
    }
}
