//! Chess records -> weights: difference focus, which favours positions that the search saw otherwise than the network.
//! The published formula (`docs/format/chess.md`) with a guard: no weight is negative or not a number.

use std::sync::{Arc, OnceLock};

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{Layout, Scalar};
use gristmill_bytes::source::Chunk;
use gristmill_bytes::weigh::{Weigher, rule_id};

use super::frame::Frame;

/// Version of the rule: raised whenever a weight changes.
const VERSION: u32 = 1;

/// Bytes of a record of [`layout_judged`].
pub const JUDGED_BYTES: usize = 12;

/// The fields of a record that weighers of chess read, alone: `best_q`, `orig_q`, `policy_kld`.
pub fn layout_judged() -> &'static Arc<Layout> {
    static LAYOUT: OnceLock<Arc<Layout>> = OnceLock::new();
    let fields = ["best_q", "orig_q", "policy_kld"].map(|name| (name, Scalar::F32, &[][..]));
    LAYOUT.get_or_init(|| Arc::new(Layout::packed(&fields).expect("three distinct fields")))
}

/// `min((t * alpha + beta)^gamma, tau)` with `t = (q_weight * |best_q - orig_q| + policy_kld) / (q_weight + pol_scale)`,
/// and `unknown` where the network's value was not recorded (`orig_q` is NaN).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiffFocus {
    /// Weight of the difference in value.
    pub q_weight: f32,
    /// Weight of the difference in policy.
    pub pol_scale: f32,
    /// Slope.
    pub alpha: f32,
    /// Offset.
    pub beta: f32,
    /// Exponent.
    pub gamma: f32,
    /// Ceiling.
    pub tau: f32,
    /// Weight of a frame without `orig_q`.
    pub unknown: f32,
}

impl DiffFocus {
    /// The weight of one frame: finite and not negative; 0 where the formula gives no such number.
    pub fn weight(&self, frame: &Frame<'_>) -> f32 {
        self.of(frame.best_q(), frame.orig_q(), frame.policy_kld())
    }

    fn of(&self, best_q: f32, orig_q: f32, policy_kld: f32) -> f32 {
        if orig_q.is_nan() {
            return self.unknown;
        }
        let difference = self.q_weight * (best_q - orig_q).abs() + policy_kld;
        let t = difference / (self.q_weight + self.pol_scale);
        let base = t * self.alpha + self.beta;
        let raised = if self.gamma == 1.0 { base } else { base.powf(self.gamma) };
        let weight = if raised > self.tau { self.tau } else { raised };
        if weight.is_finite() && weight > 0.0 { weight } else { 0.0 }
    }
}

impl Weigher for DiffFocus {
    fn id(&self) -> u64 {
        let DiffFocus { q_weight, pol_scale, alpha, beta, gamma, tau, unknown } = *self;
        rule_id("chess.diff_focus", VERSION, &[q_weight, pol_scale, alpha, beta, gamma, tau, unknown])
    }

    fn uniform(&self) -> Option<f32> {
        None
    }

    fn weigh(&self, chunk: &Chunk, out: &mut Vec<f32>) -> Result<()> {
        out.clear();
        if chunk.layout.as_ref() == Some(layout_judged()) {
            let records = chunk.records().as_chunks::<JUDGED_BYTES>().0;
            out.extend(records.iter().map(|record| {
                let [best_q, orig_q, policy_kld] =
                    [0, 4, 8].map(|at| f32::from_le_bytes(*record[at..].first_chunk().unwrap_or(&[0; 4])));
                self.of(best_q, orig_q, policy_kld)
            }));
            return Ok(());
        }
        for i in 0..chunk.frames {
            let frame = Frame::new(chunk.record(i)).map_err(|e| {
                Error::new(Kind::Unsupported, format!("difference focus weighs chess records: {}", e.detail()))
                    .in_frame(i)
            })?;
            out.push(self.weight(&frame));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::chess::frame::FrameMut;
    use crate::chess::record::{InputFormat, Version, layout_v6};
    use gristmill_bytes::layout::Layout;

    const RULE: DiffFocus =
        DiffFocus { q_weight: 6.0, pol_scale: 3.5, alpha: 1.0, beta: 0.0, gamma: 1.0, tau: 1.0, unknown: 1.0 };

    fn record(best_q: f32, orig_q: f32, policy_kld: f32) -> Vec<u8> {
        let mut bytes = vec![0; Version::V6.bytes()];
        let mut frame = FrameMut::blank(&mut bytes, InputFormat::Classical).unwrap();
        frame.set_best_q(best_q).set_orig_q(orig_q).set_policy_kld(policy_kld);
        bytes
    }

    fn weight(rule: DiffFocus, best_q: f32, orig_q: f32, policy_kld: f32) -> f32 {
        rule.weight(&Frame::new(&record(best_q, orig_q, policy_kld)).unwrap())
    }

    #[test]
    fn weights_are_those_of_the_vectors() {
        assert!((weight(RULE, 0.3, 0.1, 0.05) - 0.131_578_9).abs() < 1e-7);
        assert_eq!(weight(RULE, 0.3, f32::NAN, 0.05), 1.0);
        assert_eq!(weight(RULE, 1.0, -1.0, 2.0), 1.0);
        assert!((weight(DiffFocus { tau: 2.0, ..RULE }, 1.0, -1.0, 2.0) - 1.473_684_2).abs() < 1e-6);
    }

    #[test]
    fn every_parameter_takes_part() {
        let bent = DiffFocus { alpha: 2.0, beta: 0.1, gamma: 0.5, ..RULE };
        let t: f32 = (6.0 * 0.2 + 0.05) / 9.5;
        assert!((weight(bent, 0.3, 0.1, 0.05) - (2.0 * t + 0.1).sqrt()).abs() < 1e-6);
        assert_eq!(weight(DiffFocus { unknown: 0.25, ..RULE }, 0.3, f32::NAN, 0.0), 0.25);
        assert_ne!(DiffFocus { tau: 2.0, ..RULE }.id(), RULE.id());
    }

    #[test]
    fn ids_are_those_of_the_page() {
        const PAGE: &str = include_str!("../../../../docs/format/side-index.md");
        let uniform = gristmill_bytes::weigh::Uniform(1.0).id();
        let told = format!(
            "`uniform` with 1 is {uniform:016x}, that of `chess.diff_focus` with 6, 3.5, 1, 0, 1, 1, 1 {:016x}.",
            RULE.id()
        );
        assert!(PAGE.contains(&told), "{told}");
    }

    #[test]
    fn what_is_no_number_weighs_nothing() {
        assert_eq!(weight(DiffFocus { q_weight: 0.0, pol_scale: 0.0, ..RULE }, 0.0, 0.0, 0.0), 0.0, "0 / 0");
        assert_eq!(weight(DiffFocus { beta: -1.0, gamma: 0.5, ..RULE }, 0.0, 0.0, 0.0), 0.0, "root of -1");
        assert_eq!(weight(RULE, 0.0, 0.0, f32::NAN), 0.0);
        assert_eq!(weight(DiffFocus { beta: -1.0, ..RULE }, 0.0, 0.0, 0.0), 0.0);
    }

    #[test]
    fn a_chunk_is_weighed_frame_by_frame_and_strangers_are_refused() {
        let bytes = [record(0.3, 0.1, 0.05), record(0.3, f32::NAN, 0.05)].concat();
        let chunk = Chunk { bytes, layout: Some(Arc::clone(layout_v6())), frames: 2, ..Chunk::default() };
        let mut out = vec![7.0];
        RULE.weigh(&chunk, &mut out).unwrap();
        assert_eq!(out.len(), 2);
        assert_eq!(out[1], 1.0);
        let layout = Some(Arc::new(Layout::parse_descr("[('a', '<u2')]").unwrap()));
        let judged = [0.3f32, 0.1, 0.05, 0.3, f32::NAN, 0.05].map(f32::to_le_bytes).as_flattened().to_vec();
        let short = Chunk { bytes: judged, layout: Some(Arc::clone(layout_judged())), frames: 2, ..Chunk::default() };
        let mut again = Vec::new();
        RULE.weigh(&short, &mut again).unwrap();
        assert_eq!(again, out, "the fields alone weigh what the records weigh");
        let other = Chunk { bytes: vec![0; 2], layout, frames: 1, ..Chunk::default() };
        assert_eq!(RULE.weigh(&other, &mut out).unwrap_err().kind(), Kind::Unsupported);
    }
}
