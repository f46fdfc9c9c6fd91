//! Links between documents: what a line of one leads to, and where that is.

/// The targets of the links in a line that lead into the repository, without their places on a page.
pub(crate) fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ']).next()?.split('#').next()?;
        (!target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
            .then_some(target)
    })
}

/// The path from the root of what a document there leads to.
pub(crate) fn resolve(document: &str, target: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
