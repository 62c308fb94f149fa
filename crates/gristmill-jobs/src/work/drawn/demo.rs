//! One step of a demonstration -> its fields as data: single numbers by value, arrays by their range. Judges nothing.

use gristmill_format::layout::{DType, Field, Layout};
use serde::Serialize;

use super::FramePlace;

/// One step as data.
#[derive(Debug, Clone, Serialize)]
pub struct DemoView {
    /// Where it is.
    #[serde(flatten)]
    pub place: FramePlace,
    /// The fields in order.
    pub values: Vec<ValueView>,
}

/// One field of a step.
#[derive(Debug, Clone, Serialize)]
pub struct ValueView {
    /// Name.
    pub name: String,
    /// NumPy's type string; of a nested record its description.
    pub dtype: String,
    /// Shape.
    pub shape: Vec<usize>,
    /// Least element that is a number; absent for texts and empty arrays.
    pub min: Option<f64>,
    /// Greatest element that is a number.
    pub max: Option<f64>,
    /// Mean of the elements that are numbers.
    pub mean: Option<f64>,
}

/// The view of one record.
pub(crate) fn view(place: FramePlace, layout: Option<&Layout>, record: &[u8]) -> DemoView {
    let fields = layout.map_or(&[][..], Layout::fields);
    let value = |field: &Field| value(field, &record[field.offset..field.offset + field.bytes()]);
    DemoView { place, values: fields.iter().map(value).collect() }
}

fn value(field: &Field, bytes: &[u8]) -> ValueView {
    let mut view = ValueView {
        name: field.name.clone(),
        dtype: String::new(),
        shape: field.shape.clone(),
        min: None,
        max: None,
        mean: None,
    };
    match &field.dtype {
        DType::Record(inner) => view.dtype = inner.to_descr(),
        DType::Scalar(scalar, order) => {
            view.dtype = scalar.type_str(*order);
            let numbers = bytes.chunks_exact(scalar.size().max(1)).filter_map(|one| scalar.number(one));
            let (mut count, mut sum) = (0u32, 0.0);
            for number in numbers.filter(|number| !number.is_nan()) {
                view.min = Some(view.min.map_or(number, |least| least.min(number)));
                view.max = Some(view.max.map_or(number, |most| most.max(number)));
                count += 1;
                sum += number;
            }
            view.mean = (count > 0).then(|| sum / f64::from(count));
        }
    }
    view
}
