//! `filter`: the games that break no rule, byte for byte.

use std::sync::Arc;

use gristmill_format::chess::check::Rules;
use gristmill_jobs::rewrite::{Container, Filter as Filtering};

use super::rewrite;
use crate::args::rewrite::Filter;
use crate::failure::{Failure, Result};

pub(crate) fn run(args: &Filter) -> Result<()> {
    let rules = Rules::parse(&args.rules).map_err(|e| Failure::Usage(format!("--rules: {}", e.detail())))?;
    rewrite::run(&args.rewriting, Vec::new(), Container::Same, Arc::new(Filtering::new(rules)))
}
