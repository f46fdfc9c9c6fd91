//! The pages of the project that have examples in Rust: they are compiled as tests, and run, each in
//! a job of one.

macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        $(
            #[doc = include_str!(concat!("../../../", $path))]
            pub struct $name;
        )*
    };
}

pages! {
    Readme: "README.md",
    Collectives: "docs/collectives.md",
    Groups: "docs/groups.md",
    Joining: "docs/joining.md",
    Loans: "docs/loans.md",
    Mailboxes: "docs/mailboxes.md",
    Messages: "docs/messages.md",
    Names: "docs/names.md",
    Regions: "docs/regions.md",
    Semaphores: "docs/semaphores.md",
    SharedSegments: "docs/shared-segments.md",
    Threads: "docs/threads.md",
    Worlds: "docs/worlds.md",
}
