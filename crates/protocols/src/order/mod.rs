//! Ordered groups over several hosts: one log per group, a copy on each host that holds it, and one home that orders.
//!
//! A group is primary and backups under the arbiter's words. The home appends; an entry is *stable* when all holders
//! that count have stored it. When the home is lost, a word names the next one with a new epoch, and the longest complete
//! copy goes on. A group is lost rather than empty.
//!
//! | module | content |
//! |---|---|
//! | [`words`] | what the arbiter says about a group |
//! | [`homes`] | the arbiter's part: homes, epochs, registered holders |
//! | [`holder`] | a copy on a host, as a copy and as the home |
//! | `home` | the home: requests, feeds, what is stable |
//! | `succession` | a change of home: promises, reports, bringing, the view |
//! | `takeover` | the reports to a home that has not begun, and the copy that they choose |
//! | [`fold`] | the entries of a log, and the state that follows from them |
//! | [`message`] | messages between holders |
//! | [`requests`] | the unanswered requests of a host's parties |
//! | `copy`, [`feeding`] | positions of a copy, and how far each holder was fed |

mod copy;
pub mod feeding;
pub mod fold;
pub mod holder;
mod home;
pub mod homes;
pub mod message;
pub mod requests;
mod succession;
mod takeover;
pub mod words;

pub use fold::{OrderEntry, OrderFold, OrderLevel, OrderParty, RequestShape};
pub use holder::{Holder, OrderOutput};
pub use homes::{HomeReport, Homes};
pub use message::{CopyReport, OrderContent, OrderMessage};
pub use requests::{OrderAnswer, WindowFull};
pub use words::{GroupChange, GroupStanding, GroupWord, HolderId, OutCause};
