//! What a publication is going to do <-> the plan that is in the staging from the moment that all is durable until it is done.
//! Names lead to files of the target and of one folder in it, and nowhere else.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

/// The file of the plan, and of the note on whose staging it is.
pub(super) const PLAN: &str = ".publish.json";
pub(super) const NOTE: &str = ".job.json";

/// Maximum number of bytes of either: a hundred thousand files have a tenth of it.
pub(super) const MOST: u64 = 64 << 20;

/// Whose staging it is: made with it, by the job that began.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Note {
    /// Drawn at random.
    pub(super) token: String,
    /// What the job does, such as `append`.
    pub(super) job: String,
}

/// The plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    /// The token of the staging that it belongs to; none in plans of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<String>,
    /// Files that go.
    pub(super) remove: Vec<String>,
    /// Files that take their names.
    pub(super) publish: Vec<String>,
}

impl Plan {
    /// Reads a plan. Plans of earlier versions listed hidden files, which were never meant: these are left out.
    ///
    /// Errors: what is wrong with it.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let mut plan: Plan = serde_json::from_slice(text).map_err(|e| format!("this is no plan: {e}"))?;
        if plan.token.is_none() {
            plan.publish.retain(|name| !is_hidden(name) || name.starts_with(".."));
        }
        match plan.remove.iter().chain(&plan.publish).find(|name| !is_name(name)) {
            Some(name) => Err(format!("`{}` is no name of a file in this folder", name.escape_debug())),
            None => Ok(plan),
        }
    }

    /// Files that go and get nothing in their place.
    pub(super) fn gone(&self) -> impl Iterator<Item = &String> {
        let new: HashSet<&String> = self.publish.iter().collect();
        self.remove.iter().filter(move |name| !new.contains(name))
    }
}

/// Whether a name is hidden, and so never published: all that begin with a dot, but for data that says so by its name.
pub(super) fn is_hidden(name: &str) -> bool {
    name.starts_with('.') && !name.starts_with(".gristmill-")
}

/// Whether a name leads to a file in the folder, or in a folder in it.
pub(super) fn is_name(name: &str) -> bool {
    let component = |part: &str| !part.is_empty() && part.len() < 256 && !is_hidden(part) && !part.contains('\0');
    match name.split_once('/') {
        None => component(name),
        Some((folder, file)) => component(folder) && component(file) && !file.contains('/'),
    }
}

/// The folder in the target that a file is in, and its name there.
pub(super) fn parts(name: &str) -> (Option<&str>, &str) {
    name.split_once('/').map_or((None, name), |(folder, file)| (Some(folder), file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for name in ["a", "steps.npy", "marks/a.mark", "a b", "x-00.npy", ".gristmill-lineage.json"] {
            assert!(is_name(name), "{name}");
        }
        let long = "a".repeat(256);
        for name in ["", "/", "..", "../a", "a/../b", "/etc/passwd", "a/", "/a", "a/b/c", ".a", "a/.b", "a\0", &long] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn plans_of_earlier_versions_are_read() {
        let plan = Plan::parse(br#"{"remove":["a"],"publish":[".publish.json.part","b"]}"#).unwrap();
        assert_eq!(plan, Plan { token: None, remove: vec!["a".into()], publish: vec!["b".into()] });
        for text in [&b"{"[..], br#"{"remove":["../a"],"publish":[]}"#, br#"{"remove":[],"publish":["..x/a"]}"#] {
            assert!(Plan::parse(text).is_err());
        }
        assert!(Plan::parse(br#"{"token":"7","remove":[],"publish":[".a"]}"#).is_err());
    }
}
