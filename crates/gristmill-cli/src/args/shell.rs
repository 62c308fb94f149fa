//! Options of what helps at a shell: completions and manual pages. Writes nothing.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// A shell -> the script that completes the words of this program in it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gristmill completions bash > ~/.local/share/bash-completion/completions/gristmill\n  \
gristmill completions zsh > ~/.zfunc/_gristmill\n  gristmill completions fish > ~/.config/fish/completions/gristmill.fish"
)]
pub(crate) struct Completions {
    /// Which shell.
    #[arg(value_enum)]
    pub(crate) shell: Shell,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A folder -> the manual pages in it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  gristmill man man1 && man ./man1/gristmill-pack.1\n  gristmill man ~/.local/share/man/man1"
)]
pub(crate) struct Man {
    /// Folder to write the pages to; made if it does not exist.
    pub(crate) out: PathBuf,
    /// Replace existing pages.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Print what would be written, and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one line of JSON on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}
