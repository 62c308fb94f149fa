//! The configs of a pool and its unpacker -> how draws are accepted, what is cached, how frames are weighed.
//! With `encoder`, the only place of the engine that names a game's rules; refuses what cannot be, with stage and field.

use std::sync::Arc;

use gristmill_format::chess::DiffFocus;
use gristmill_format::weigh::{Uniform, Weigher};
use gristmill_runtime::error::{Error, Result};
use gristmill_stages::config::{
    CacheQuota, ChunkUnpackerConfig, HanseForm, PositionSamplingConfig, ShufflingChunkPoolConfig,
};
use gristmill_stages::stage::pool::{CacheRules, Chance};

use crate::pipeline::plan::graph::{Node, Port};

/// How the draws of a pool become tickets, where not each one does.
#[derive(Debug, Clone)]
pub(crate) struct AcceptPlan {
    pub(crate) chance: Chance,
    /// Weighs chunks for [`Chance::Weight`], and counts their frames for [`Chance::Length`].
    pub(crate) weigher: Arc<dyn Weigher>,
    pub(crate) cache: Option<CacheRules>,
}

/// The acceptance of the pool `node`, whose chunks `unpacker` (stage number and config) reads; `None` where it takes
/// every draw.
pub(in crate::pipeline) fn acceptance(
    node: &Node<'_>,
    pool: &ShufflingChunkPoolConfig,
    unpacker: (usize, &ChunkUnpackerConfig),
) -> Result<Option<AcceptPlan>> {
    let cache = cache(node, pool, unpacker)?;
    let gamma = pool.hanse_sampling_gamma;
    if !(gamma.is_finite() && gamma >= 0.0) {
        return Err(Error::field(node.name, "hanse_sampling_gamma", "expected a number of at least 0"));
    }
    let weigher = weigher(node.name, pool.position_sampling.as_ref())?;
    let (chance, weigher): (_, Arc<dyn Weigher>) = match pool.hanse_sampling_threshold.filter(|t| *t > 0) {
        None => (Chance::Always, Arc::new(Uniform(1.0))),
        Some(_) if pool.hanse_sampling_form == HanseForm::Weight => (Chance::Weight { gamma }, weigher),
        Some(threshold) => (Chance::Length { threshold, gamma }, Arc::new(Uniform(1.0))),
    };
    let needed = chance.needs_weight() || cache.is_some();
    Ok(needed.then_some(AcceptPlan { chance, weigher, cache }))
}

fn cache(
    node: &Node<'_>,
    pool: &ShufflingChunkPoolConfig,
    (stage, unpacker): (usize, &ChunkUnpackerConfig),
) -> Result<Option<CacheRules>> {
    if pool.cachehit_output.is_none() {
        return Ok(None);
    }
    let prefetch = Port { stage, output: 1 };
    let (Some(second), Some(count)) = (node.inputs.get(1), unpacker.prefetch_count) else {
        let text = "with `cachehit_output` the second input is the `prefetch_output` of the unpacker";
        return Err(Error::field(node.name, "input", text));
    };
    if *second != prefetch {
        let text = "the second input must be the prefetch output of the unpacker that reads this very pool";
        return Err(Error::field(node.name, "input", text));
    }
    let size = pool.position_cache_size.unwrap_or(0);
    if u32::try_from(size).is_err() {
        return Err(Error::field(node.name, "position_cache_size", "expected at most 4 294 967 295 frames"));
    }
    if pool.cache_lookahead == 0 {
        return Err(Error::field(node.name, "cache_lookahead", "expected at least 1 draw"));
    }
    Ok(Some(CacheRules {
        size,
        window: pool.chunk_pool_size.max(1),
        prefetch: count,
        lookahead: pool.cache_lookahead,
        compat: pool.cache_quota == CacheQuota::Compat,
    }))
}

/// What weighs frames as a stage's `position_sampling` says.
pub fn weigher(stage: &str, config: Option<&PositionSamplingConfig>) -> Result<Arc<dyn Weigher>> {
    let config = config.copied().unwrap_or_default();
    let fault = |text: &str| Error::field(stage, "position_sampling", text);
    let focus = DiffFocus {
        q_weight: config.diff_focus_q_weight.unwrap_or(0.0),
        pol_scale: config.diff_focus_pol_scale.unwrap_or(1.0),
        alpha: config.diff_focus_alpha,
        beta: config.diff_focus_beta,
        gamma: config.diff_focus_gamma,
        tau: config.diff_focus_tau,
        unknown: config.default_weight,
    };
    let DiffFocus { q_weight, pol_scale, alpha, beta, gamma, tau, unknown } = focus;
    if [q_weight, pol_scale, alpha, beta, gamma, tau, unknown].iter().any(|number| !number.is_finite()) {
        return Err(fault("expected finite numbers"));
    }
    if unknown < 0.0 {
        return Err(fault("default_weight: expected at least 0"));
    }
    if config.diff_focus_q_weight.is_none() && config.diff_focus_pol_scale.is_none() {
        return Ok(Arc::new(Uniform(unknown)));
    }
    if q_weight + pol_scale == 0.0 {
        return Err(fault("diff_focus_q_weight + diff_focus_pol_scale is 0: nothing can be divided by it"));
    }
    Ok(Arc::new(focus))
}

/// What weighs frames for an unpacker; `None` where all weigh the same.
pub(in crate::pipeline) fn frame_weigher(
    stage: &str,
    config: &ChunkUnpackerConfig,
) -> Result<Option<Arc<dyn Weigher>>> {
    match (config.prefetch_count, &config.prefetch_output) {
        (Some(_), Some(_)) if config.position_count != Some(1) => {
            return Err(Error::field(stage, "prefetch_count", "prefetching needs position_count = 1"));
        }
        (Some(0), _) => return Err(Error::field(stage, "prefetch_count", "expected at least 1")),
        (Some(_), None) | (None, Some(_)) => {
            return Err(Error::field(
                stage,
                "prefetch_output",
                "set both prefetch_count and prefetch_output, or neither",
            ));
        }
        (Some(_), Some(_)) | (None, None) => {}
    }
    let weigher = weigher(stage, config.position_sampling.as_ref())?;
    if weigher.uniform().is_none() && config.position_sampling_rate.is_some() {
        let text = "frames are weighed with position_count only, not with a rate";
        return Err(Error::field(stage, "position_sampling", text));
    }
    Ok(weigher.uniform().is_none().then_some(weigher))
}
