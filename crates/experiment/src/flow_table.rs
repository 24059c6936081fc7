//! The flow table of a record, serialized by columns, so that readers need not process each row.

use std::collections::HashMap;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// The type of a column, and how to read it from a row.
#[derive(Clone, Copy)]
enum Values {
    /// Integers.
    Whole(fn(&FlowRecord) -> Option<u64>),
    /// Floats; non-finite values count as missing.
    Real(fn(&FlowRecord) -> Option<f64>),
    /// Strings with many duplicates.
    Text(fn(&FlowRecord) -> Option<&str>),
    /// A list of integers per flow.
    Several(fn(&FlowRecord) -> &[u64]),
}

/// Declares the row and its columns: the type of each field, the type of its column, and how to read it from a row.
macro_rules! columns {
    ($($(#[$help:meta])* $name:ident: $field:ty => $type:ident(|$flow:ident| $value:expr);)+) => {
        /// A row of the flow table: one measured or background flow.
        #[derive(Clone, Debug, PartialEq, JsonSchema)]
        pub struct FlowRecord {
            $($(#[$help])* pub $name: $field,)+
        }

        /// The columns in order, each named after its field.
        const COLUMNS: &[(&str, Values)] = &[$((stringify!($name), Values::$type(|$flow| $value)),)+];
    };
}

columns! {
    /// Number of the flow, in order of start.
    flow: u32 => Whole(|flow| Some(flow.flow.into()));
    /// Name of the traffic; null for measured flows.
    traffic: Option<String> => Text(|flow| flow.traffic.as_deref());
    /// Host that opened the flow.
    from: String => Text(|flow| Some(&flow.from));
    /// Host that accepted the flow.
    to: String => Text(|flow| Some(&flow.to));
    /// Size in bytes; null for flows without a size.
    size_bytes: Option<u64> => Whole(|flow| flow.size_bytes);
    /// Size class, from 0; null without size classes or a size.
    class: Option<usize> => Whole(|flow| flow.class.map(|class| class as u64));
    /// Opening time, in seconds since the start of the trial.
    opened_s: f64 => Real(|flow| Some(flow.opened_s));
    /// Flow completion time: from opening to the arrival of the last byte, in seconds; null if incomplete.
    fct_s: Option<f64> => Real(|flow| flow.fct_s);
    /// Flow completion time over that of the flow alone on its empty path; null if incomplete or without a size.
    slowdown: Option<f64> => Real(|flow| flow.slowdown);
    /// Goodput over the measured time or the duration of the flow, in bit/s; null over no time.
    goodput_bps: Option<f64> => Real(|flow| flow.goodput_bps);
    /// Data packets sent in the measured time, including retransmissions.
    packets_sent: u64 => Whole(|flow| Some(flow.packets_sent));
    /// Retransmitted data packets in the measured time.
    retransmissions: u64 => Whole(|flow| Some(flow.retransmissions));
    /// Retransmission timeouts in the measured time; null for protocols that do not count them.
    timeouts: Option<u64> => Whole(|flow| flow.timeouts);
    /// Number of paths that carried its data.
    paths: u32 => Whole(|flow| Some(flow.paths.into()));
    /// Payload bytes sent on each path between its hosts in the measured time, including retransmissions, by path
    /// number.
    path_bytes: Vec<u64> => Several(|flow| &flow.path_bytes);
    /// Times of the rounds of all measured flows (barrier, all-reduce) in nanoseconds, in the row of the first measured flow; else
    /// empty.
    round_ns: Vec<u64> => Several(|flow| &flow.round_ns);
    /// Reason of a failure; null otherwise.
    error: Option<String> => Text(|flow| flow.error.as_deref());
}

/// Little-endian numbers; in JSON their bytes in base64 (RFC 4648, section 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed(pub Vec<u8>);

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(&self.0, &STANDARD))
    }
}

/// A column of a flow table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Name.
    pub name: &'static str,
    /// NumPy type of `values`: "<u1", "<u2", "<u4", "<i8" or "<f8".
    pub dtype: &'static str,
    /// The values of all rows.
    pub values: Packed,
    /// One byte per row, 0 for a missing value, whose place in `values` has a zero. `None` if all rows have a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub present: Option<Packed>,
    /// The strings that `values` indexes.
    #[serde(rename = "words", skip_serializing_if = "Option::is_none")]
    pub dictionary: Option<Vec<String>>,
    /// The number of `values` of each row, as "<u4".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lengths: Option<Packed>,
}

/// Returns the columns of a table with these rows.
#[must_use]
pub fn columns(flows: &[FlowRecord]) -> Vec<Column> {
    COLUMNS
        .iter()
        .map(|(name, values)| values.column(name, flows))
        .collect()
}

/// Serializes rows as a list of columns.
///
/// # Errors
/// Errors of the serializer.
pub(crate) fn serialize<S: Serializer>(flows: &[FlowRecord], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(columns(flows))
}

impl Values {
    fn column(self, name: &'static str, flows: &[FlowRecord]) -> Column {
        match self {
            Self::Whole(of) => {
                let values = flows.iter().map(of);
                Column {
                    present: presence(values.clone().map(|value| value.is_some())),
                    ..Column::whole(name, values.map(|value| value.unwrap_or(0)))
                }
            }
            Self::Real(of) => {
                let values = flows.iter().map(of);
                let values = values.map(|value| value.filter(|value| value.is_finite()));
                let numbers = values.clone().map(|value| value.unwrap_or(0.0).to_le_bytes());
                Column {
                    present: presence(values.map(|value| value.is_some())),
                    ..Column::new(name, "<f8", packed(numbers))
                }
            }
            Self::Text(of) => {
                let mut dictionary: Vec<String> = Vec::new();
                let mut known: HashMap<&str, u64> = HashMap::new();
                let mut place = |text| {
                    *known.entry(text).or_insert_with(|| {
                        dictionary.push(text.to_owned());
                        dictionary.len() as u64 - 1
                    })
                };
                let places: Vec<u64> = flows.iter().map(|flow| of(flow).map_or(0, &mut place)).collect();
                Column {
                    present: presence(flows.iter().map(|flow| of(flow).is_some())),
                    dictionary: Some(dictionary),
                    ..Column::whole(name, places.into_iter())
                }
            }
            Self::Several(of) => {
                let lengths = flows.iter().map(|flow| of(flow).len() as u32);
                Column {
                    lengths: Some(packed(lengths.map(u32::to_le_bytes))),
                    ..Column::whole(name, flows.iter().flat_map(of).copied())
                }
            }
        }
    }
}

impl Column {
    const fn new(name: &'static str, dtype: &'static str, values: Packed) -> Self {
        Self {
            name,
            dtype,
            values,
            present: None,
            dictionary: None,
            lengths: None,
        }
    }

    /// Returns a column of integers in the smallest type for the largest one; all are far below 2^63.
    fn whole(name: &'static str, values: impl Iterator<Item = u64> + Clone) -> Self {
        let (dtype, values) = match values.clone().max().unwrap_or(0) {
            0..=0xff => ("<u1", packed(values.map(|value| (value as u8).to_le_bytes()))),
            0x100..=0xffff => ("<u2", packed(values.map(|value| (value as u16).to_le_bytes()))),
            0x1_0000..=0xffff_ffff => ("<u4", packed(values.map(|value| (value as u32).to_le_bytes()))),
            _ => ("<i8", packed(values.map(u64::to_le_bytes))),
        };
        Self::new(name, dtype, values)
    }
}

fn packed<const N: usize>(numbers: impl Iterator<Item = [u8; N]>) -> Packed {
    Packed(numbers.flatten().collect())
}

fn presence(rows: impl Iterator<Item = bool> + Clone) -> Option<Packed> {
    let all = rows.clone().all(|is_there| is_there);
    (!all).then(|| packed(rows.map(|is_there| [u8::from(is_there)])))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use serde_json::{Value, json};

    use super::*;

    fn flow(number: u32, to: &str, path_bytes: &[u64]) -> FlowRecord {
        FlowRecord {
            flow: number,
            traffic: None,
            from: "a".into(),
            to: to.into(),
            size_bytes: (number > 0).then_some(1 << 16),
            class: None,
            opened_s: 0.5,
            fct_s: None,
            slowdown: None,
            goodput_bps: None,
            packets_sent: 3,
            retransmissions: 0,
            timeouts: Some(0),
            paths: 1,
            path_bytes: path_bytes.to_vec(),
            round_ns: Vec::new(),
            error: None,
        }
    }

    fn columns_by_name(flows: &[FlowRecord]) -> HashMap<String, Value> {
        let Ok(Value::Array(columns)) = serialize(flows, serde_json::value::Serializer) else {
            panic!("columns are a list");
        };
        let name = |column: &Value| column["name"].as_str().unwrap().to_owned();
        columns
            .into_iter()
            .map(|column| (name(&column), column))
            .collect()
    }

    #[test]
    fn a_column_has_the_values_of_all_rows_in_order() {
        let found = columns_by_name(&[flow(0, "b", &[7]), flow(1, "c", &[258, 1]), flow(2, "b", &[])]);
        let bytes = |bytes: &[u8]| json!(STANDARD.encode(bytes));
        assert_eq!(
            found["flow"],
            json!({"name": "flow", "dtype": "<u1", "values": bytes(&[0, 1, 2])})
        );
        assert_eq!(found["size_bytes"]["dtype"], "<u4");
        assert_eq!(
            found["size_bytes"]["values"],
            bytes(&[0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0])
        );
        assert_eq!(found["size_bytes"]["present"], bytes(&[0, 1, 1]));
        assert_eq!(
            found["opened_s"]["values"],
            bytes(&0.5_f64.to_le_bytes().repeat(3))
        );
        assert_eq!(found["to"]["words"], json!(["b", "c"]));
        assert_eq!(found["to"]["values"], bytes(&[0, 1, 0]));
        assert_eq!(found["path_bytes"]["dtype"], "<u2");
        assert_eq!(found["path_bytes"]["values"], bytes(&[7, 0, 2, 1, 1, 0]));
        assert_eq!(
            found["path_bytes"]["lengths"],
            bytes(&[1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0])
        );
        assert_eq!(found["error"]["words"], json!([]));
        // NaN counts as missing.
        assert_eq!(found["goodput_bps"]["present"], bytes(&[0, 0, 0]));
    }
}
