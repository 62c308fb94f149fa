//! The repository and the target of this build -> what `gristmill --version` says beside the version. Reads no network.

use std::env;
use std::process::Command;

fn main() {
    let commit = env::var("GRISTMILL_COMMIT").ok().filter(|commit| !commit.is_empty()).or_else(commit);
    let target = env::var("TARGET").unwrap_or_else(|_| "unknown target".to_owned());
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let commit = commit.unwrap_or_else(|| "unknown commit".to_owned());
    let line = format!("{version} ({commit}, {target})");
    // Cargo's own way to hear of it.
    let _ = std::io::Write::write_all(
        &mut std::io::stdout(),
        format!(
            "cargo::rustc-env=GRISTMILL_VERSION={line}\ncargo::rerun-if-env-changed=GRISTMILL_COMMIT\n{}",
            watched()
        )
        .as_bytes(),
    );
}

/// The commit that is checked out, shortened; `None` where this is no repository, such as a tarball.
fn commit() -> Option<String> {
    let git = |words: &[&str]| {
        let done = Command::new("git").args(words).output().ok().filter(|done| done.status.success())?;
        Some(String::from_utf8_lossy(&done.stdout).trim().to_owned()).filter(|text| !text.is_empty())
    };
    git(&["rev-parse", "--short=12", "HEAD"])
}

/// What changes with the commit: what is released is built again then, what is only tested is not.
fn watched() -> String {
    let own = "cargo::rerun-if-changed=build.rs\n".to_owned();
    if env::var("PROFILE").as_deref() != Ok("release") {
        return own;
    }
    let path = |name: &str| {
        let done = Command::new("git").args(["rev-parse", "--git-path", name]).output().ok()?;
        let path = String::from_utf8_lossy(&done.stdout).trim().to_owned();
        std::path::Path::new(&path).exists().then(|| format!("cargo::rerun-if-changed={path}\n"))
    };
    path("logs/HEAD").or_else(|| path("HEAD")).map_or(own.clone(), |head| own + &head)
}
