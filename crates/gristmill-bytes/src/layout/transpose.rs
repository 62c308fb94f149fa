//! Elements in Fortran order -> the same in C order. Knows sizes and shapes, not what elements are.

/// The elements of an array whose first axis varies fastest, with its last axis varying fastest instead.
///
/// `bytes` holds `shape`'s product elements of `unit` bytes each.
pub fn c_order(bytes: &[u8], unit: usize, shape: &[usize]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    if bytes.is_empty() || unit == 0 {
        return out;
    }
    let mut index = vec![0usize; shape.len()];
    for _ in 0..bytes.len() / unit {
        let flat = shape.iter().zip(&index).rev().fold(0, |at, (dim, i)| at * dim + i);
        out.extend_from_slice(&bytes[flat * unit..(flat + 1) * unit]);
        for axis in (0..index.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_become_rows() {
        assert_eq!(c_order(&[0, 1, 2, 3, 4, 5], 1, &[2, 3]), [0, 2, 4, 1, 3, 5]);
        assert_eq!(c_order(&[0, 0, 1, 1, 2, 2, 3, 3], 2, &[2, 2]), [0, 0, 2, 2, 1, 1, 3, 3]);
        let cube: Vec<u8> = (0..24).collect();
        let turned = c_order(&cube, 1, &[2, 3, 4]);
        assert_eq!(turned[4 + 2], 2 * 6 + 2, "element (0, 1, 2)");
        assert_eq!(c_order(&[], 4, &[0, 3]), [0u8; 0]);
    }
}
