//! A plan -> the most memory it can take, term by term; a `memory` bound is checked against it before anything starts.
//! The terms are the very sizes that `chain` allocates.

use gristmill_format::encode::TensorSpec;
use gristmill_format::layout::{DType, Field};
use gristmill_format::source::Limits;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::sheet::sheet_bytes;
use gristmill_runtime::runtime::slots::Long;
use gristmill_stages::config::{DataLoaderConfig, MemorySize};

use crate::pipeline::chain::pieces::PIECE_ROWS;
use crate::pipeline::chain::windows;
use crate::pipeline::plan::{ChainPlan, DrawPlan, Plan, plan};

/// Slots beyond the reservoir: rows that are being copied or encoded.
const SLACK: usize = 16 * PIECE_ROWS;

/// The program itself, its threads and an interpreter around it.
const BASE: u64 = 64 << 20;

/// Per chunk of a pool's window, copies for resuming included: three times entry, use count and bit (33), twice its
/// source's number and place (66).
const WINDOW_BYTES: u64 = 100;

/// Per chunk of a pool that does not take every draw: use count, and what is known of the contents (12).
const ACCEPT_BYTES: u64 = 16;

/// Per slot, what stands for the position of its row.
const KEY_BYTES: u64 = 8;

/// Per file: name, stat, identity.
const FILE_BYTES: u64 = 320;

/// Stored bytes of a chunk that is read ahead, for the sum; a larger one takes the place of decoded ones (`chain/room`).
const STORED_CHUNK: u64 = 64 << 10;

/// Workers that a reservoir is sized for, however many there are: the number of threads must not change a batch.
/// More of them are refused where they would break the bound.
const SIZING_WORKERS: usize = 8;

/// Records that any chain may hold beside its slots.
const FEW: u64 = 256;

/// Slots of a chain's arena.
pub(in crate::pipeline) fn slots(plan: &ChainPlan) -> usize {
    let cached = plan.branches.iter().filter_map(|branch| branch.accept.as_ref()?.cache);
    let cached: u64 = cached.map(|cache| cache.size).sum();
    plan.held().saturating_add(usize::try_from(cached).unwrap_or(usize::MAX)).saturating_add(SLACK)
}

/// Slots from which on records are folded: below that it saves nothing to speak of.
const FOLDED_FROM: usize = 2048;

/// Elements from which on an array is long.
const LONG: usize = 512;

/// The array that is folded in the slots of a chain, if there is one.
pub(in crate::pipeline) fn long(plan: &ChainPlan) -> Option<Long> {
    let long = |field: &Field| {
        let of_four = matches!(&field.dtype, DType::Scalar(scalar, _) if scalar.size() == 4);
        (of_four && field.count() >= LONG).then(|| Long { offset: field.offset, count: field.count() })
    };
    let fields = plan.encoder.input().fields().iter().filter_map(long);
    fields.max_by_key(|long| long.count).filter(|_| slots(plan) - SLACK >= FOLDED_FROM)
}

/// Bytes of one slot.
fn stride(plan: &ChainPlan) -> u64 {
    let size = plan.encoder.input().size();
    long(plan).map_or(size, |long| long.folded(size)).next_multiple_of(64) as u64
}

/// Bytes of one slot that holds its record as it is.
fn whole(plan: &ChainPlan) -> u64 {
    plan.encoder.input().size().next_multiple_of(64) as u64
}

/// Bytes that records may take beside the slots into which they do not fold: for the few that every chain may have, and all
/// that the bound leaves.
pub(in crate::pipeline) fn beside(plan: &Plan, memory: Option<MemorySize>, workers: usize, limits: &Limits) -> u64 {
    let Some(bound) = memory else { return u64::MAX };
    let folding = plan.chains.iter().filter(|chain| long(chain).is_some());
    let few = folding.clone().map(|chain| FEW * whole(chain)).max().unwrap_or(0);
    let left = bound.0.saturating_sub(promised(plan, workers, limits));
    few + left / (folding.count() as u64).max(1)
}

/// Maximum number of bytes of a plan: its loader's base, windows, reservoirs and batches (one in the consumer's hands).
pub(crate) fn promised(plan: &Plan, workers: usize, limits: &Limits) -> u64 {
    let mut total = BASE.saturating_add(plan.solid);
    for chain in &plan.chains {
        let rows: Vec<usize> = chain.encoder.outputs().iter().map(TensorSpec::row_bytes).collect();
        let sheet = sheet_bytes(chain.batch_size, &rows, |_, _| ()).unwrap_or(usize::MAX) as u64;
        total = total.saturating_add((slots(chain) as u64).saturating_mul(stride(chain)));
        total = total.saturating_add(long(chain).map_or(0, |_| FEW * whole(chain)));
        let keys = if chain.reads_positions() { KEY_BYTES * slots(chain) as u64 } else { 0 };
        total = total.saturating_add(chain.step_bytes()).saturating_add(keys);
        total = total.saturating_add(sheet.saturating_mul(chain.capacity.max(2) as u64 + 1));
        for branch in &chain.branches {
            let (places, stored) = chunks(chain, workers);
            let decoded = (places as u64).saturating_mul(limits.max_chunk_bytes as u64);
            total = total.saturating_add(decoded).saturating_add(stored);
            if let DrawPlan::Pool { window, .. } = branch.draw {
                let accept = if branch.accept.is_some() { ACCEPT_BYTES } else { 0 };
                total = total.saturating_add(window.most().saturating_mul(WINDOW_BYTES + FILE_BYTES + accept));
            }
        }
    }
    total
}

/// Chunks that a branch of a chain may have decoded, and the bytes of stored ones that it may hold beside them.
pub(in crate::pipeline) fn chunks(plan: &ChainPlan, workers: usize) -> (usize, u64) {
    let [decoded, ahead] = windows(plan, workers);
    (decoded, (decoded + ahead) as u64 * STORED_CHUNK)
}

/// Refuses a config whose promise is above its bound.
pub(crate) fn check(plan: &Plan, memory: Option<MemorySize>, workers: usize, limits: &Limits) -> Result<()> {
    let Some(bound) = memory else { return Ok(()) };
    let promise = promised(plan, workers, limits);
    if promise <= bound.0 {
        return Ok(());
    }
    let reservoirs: u64 = plan.chains.iter().map(|chain| chain.held() as u64 * stride(chain)).sum();
    let text = format!(
        "{} MiB are needed, {} MiB of them for reservoirs; the bound is {} MiB: lower the reservoir, the batch size, \
         the queue capacity, max_chunk_bytes or max_solid_bytes, or raise the bound",
        promise.div_ceil(1 << 20),
        reservoirs >> 20,
        bound.0 >> 20
    );
    Err(Error::config("memory", text))
}

/// Bytes that a config promises not to exceed: reservoirs, windows, batches and the program itself. The names of files
/// beyond the pools' windows come on top, some 300 bytes each.
pub fn promise(config: &DataLoaderConfig) -> Result<u64> {
    Ok(promised(&plan(config)?, workers(config), &limits(config)))
}

/// Frames that a reservoir of every output may hold within `config.memory`, given a config without any.
///
/// Errors: the bound leaves no room for a reservoir at all.
pub(crate) fn reservoir_within(config: &DataLoaderConfig) -> Result<usize> {
    let Some(bound) = config.memory else { return Ok(0) };
    // For one rank, so that it does not depend on how many there are.
    let plan = plan(&DataLoaderConfig { rank: None, world_size: None, ..config.clone() })?;
    let limits = limits(config);
    check(&plan, Some(bound), workers(config).max(SIZING_WORKERS), &limits)?;
    let left = bound.0 - promised(&plan, SIZING_WORKERS, &limits);
    // Reckoned with whole records, so that a bound gives the reservoir that it always gave.
    let slot: u64 = plan.chains.iter().map(whole).sum();
    let frames = left / slot.max(1);
    Ok(usize::try_from(frames.min(u64::from(u32::MAX) - SLACK as u64)).unwrap_or(usize::MAX))
}

/// Worker threads of a config.
pub(crate) fn workers(config: &DataLoaderConfig) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    config.threads.unwrap_or_else(cores).clamp(1, 1024)
}

/// Bounds for decoders of a config.
pub(crate) fn limits(config: &DataLoaderConfig) -> Limits {
    let bytes = config.max_chunk_bytes.map(|size| usize::try_from(size.0).unwrap_or(usize::MAX));
    bytes.map_or_else(Limits::default, |max_chunk_bytes| Limits { max_chunk_bytes })
}
