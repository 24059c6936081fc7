//! Many specifications at once, composed of sections that are read once: the cells of a study.

use foundation::Problem;
use foundation::reading::{read, read_value};
use network::PathConfig;
use network::topology::TopologyConfig;
use serde_json::Value;

use crate::fit::fit;
use crate::protocol::ProtocolConfig;
use crate::spec::{NetworkConfig, TrialSpec};
use crate::traffic::TrafficConfig;
use crate::vocabulary::check;
use crate::workload::WorkloadConfig;

/// A valid section of a specification.
#[derive(Clone, Debug)]
enum Section {
    Network(NetworkConfig),
    Protocol(ProtocolConfig),
    Workload(WorkloadConfig),
    Traffic(Vec<TrafficConfig>),
    Links(Vec<String>),
}

impl Section {
    /// Reads a section in JSON; `None` if it is not valid. Networks are validated where they are built.
    fn read(name: &str, json: &str) -> Option<Self> {
        fn valid<T>(config: T, problems: &[Problem]) -> Option<T> {
            problems.is_empty().then_some(config)
        }
        match name {
            "path" => {
                let path: Box<PathConfig> = read(json).ok()?;
                Some(Self::Network(NetworkConfig::Path(path)))
            }
            "topology" => {
                let topology: Box<TopologyConfig> = read(json).ok()?;
                Some(Self::Network(NetworkConfig::Topology(topology)))
            }
            "protocol" => {
                let protocol: ProtocolConfig = read(json).ok()?;
                let problems = protocol.validate();
                valid(Self::Protocol(protocol), &problems)
            }
            "workload" => {
                let workload: WorkloadConfig = read(json).ok()?;
                let problems = workload.validate();
                valid(Self::Workload(workload), &problems)
            }
            "traffic" => {
                let traffic: Vec<TrafficConfig> = read(json).ok()?;
                let problems: Vec<Problem> = traffic.iter().flat_map(TrafficConfig::validate).collect();
                valid(Self::Traffic(traffic), &problems)
            }
            "links" => read(json).ok().map(Self::Links),
            _ => None,
        }
    }

    fn place(&self, spec: &mut TrialSpec) {
        match self {
            Self::Network(network) => spec.network.clone_from(network),
            Self::Protocol(protocol) => spec.protocol.clone_from(protocol),
            Self::Workload(workload) => spec.workload.clone_from(workload),
            Self::Traffic(traffic) => spec.traffic.clone_from(traffic),
            Self::Links(links) => spec.links.clone_from(links),
        }
    }
}

/// A section of many specifications: its different contents in JSON, and the number of its content in each specification.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    /// Name of the section.
    pub name: &'a str,
    /// Contents in JSON.
    pub contents: &'a [String],
    /// Numbers of contents, one for each specification.
    pub rows: &'a [u32],
}

/// Returns the number of the first specification that meets a condition, which receives `None` for one with invalid sections.
///
/// # Errors
/// Columns of different lengths, numbers without a content, or missing sections.
pub fn first(
    columns: &[Column<'_>],
    seed: u64,
    mut meets: impl FnMut(Option<&TrialSpec>) -> bool,
) -> Result<Option<usize>, &'static str> {
    let count = columns.first().map_or(0, |column| column.rows.len());
    for column in columns {
        if column.rows.len() != count {
            return Err("columns have different lengths");
        }
        if column
            .rows
            .iter()
            .any(|&row| row as usize >= column.contents.len())
        {
            return Err("a number has no content");
        }
    }
    let read = |column: &Column<'_>| -> Vec<Option<Section>> {
        let contents = column.contents.iter();
        contents.map(|json| Section::read(column.name, json)).collect()
    };
    let sections: Vec<Vec<Option<Section>>> = columns.iter().map(read).collect();
    let mut spec: Option<TrialSpec> = None;
    let mut placed: Vec<Option<u32>> = vec![None; columns.len()];
    for row in 0..count {
        let chosen = columns.iter().map(|column| column.rows[row]);
        let parts: Option<Vec<(usize, u32, &Section)>> = chosen
            .enumerate()
            .map(|(at, number)| Some((at, number, sections[at][number as usize].as_ref()?)))
            .collect();
        let Some(parts) = parts else {
            if meets(None) {
                return Ok(Some(row));
            }
            continue;
        };
        let spec = match &mut spec {
            Some(spec) => spec,
            none => none.insert(whole(&parts, seed).ok_or("a section is missing")?),
        };
        for (at, number, section) in parts {
            if placed[at] != Some(number) {
                section.place(spec);
                placed[at] = Some(number);
            }
        }
        let fits = fit(&spec.protocol, &spec.workload).is_none();
        if meets(fits.then_some(&*spec)) {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// Returns a specification with the required sections.
fn whole(parts: &[(usize, u32, &Section)], seed: u64) -> Option<TrialSpec> {
    let sections = || parts.iter().map(|&(_, _, section)| section);
    let protocol = sections().find_map(|section| match section {
        Section::Protocol(protocol) => Some(protocol.clone()),
        _ => None,
    });
    let workload = sections().find_map(|section| match section {
        Section::Workload(workload) => Some(workload.clone()),
        _ => None,
    });
    Some(TrialSpec {
        network: NetworkConfig::Path(Box::default()),
        protocol: protocol?,
        workload: workload?,
        traffic: Vec::new(),
        links: Vec::new(),
        seed,
        trial: 0,
    })
}

/// Returns the numbers of contents of one section that have problems ([`check`]). Those of `traffic` are lists of tables.
///
/// # Errors
/// If the section does not exist.
pub fn wrong_contents(section: &str, contents: &[String]) -> Result<Vec<usize>, Problem> {
    let mut wrong = Vec::new();
    for (number, json) in contents.iter().enumerate() {
        let is_wrong = if section == "traffic" {
            !is_valid_traffic(json)
        } else {
            !check(section, json)?.is_empty()
        };
        if is_wrong {
            wrong.push(number);
        }
    }
    Ok(wrong)
}

fn is_valid_traffic(json: &str) -> bool {
    let Ok(tables) = serde_json::from_str::<Vec<Value>>(json) else {
        return false;
    };
    let mut configs = tables.into_iter().map(read_value::<TrafficConfig>);
    configs.all(|config| config.is_ok_and(|config| config.validate().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    const PROTOCOL: [&str; 2] = [r#"{"kind":"tcp"}"#, r#"{"kind":"udp"}"#];
    const WORKLOAD: [&str; 3] = [
        r#"{"kind":"file","size":"1MB"}"#,
        r#"{"kind":"bulk","duration":"1s","to":"nobody"}"#,
        r#"{"kind":"bulk","duration":"1s","rate":"1Mbit/s"}"#,
    ];

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    fn has_no_plan(spec: Option<&TrialSpec>) -> bool {
        spec.is_none_or(|spec| Plan::of(spec).is_err())
    }

    #[test]
    fn composes_each_specification_of_its_sections() {
        let (path, protocol, workload) = (
            owned(&[r#"{"rate":"1Mbit/s"}"#, r#"{"rate":"2Mbit/s"}"#]),
            owned(&PROTOCOL),
            owned(&WORKLOAD),
        );
        let rows = [[0, 1, 1, 0], [0, 0, 0, 0], [2, 2, 0, 2]];
        let columns = [
            Column {
                name: "path",
                contents: &path,
                rows: &rows[0],
            },
            Column {
                name: "protocol",
                contents: &protocol,
                rows: &rows[1],
            },
            Column {
                name: "workload",
                contents: &workload,
                rows: &rows[2],
            },
        ];
        let mut seen = Vec::new();
        let found = first(&columns, 7, |spec| {
            seen.push(spec.unwrap().clone());
            false
        });
        assert_eq!(found, Ok(None));
        for (row, spec) in seen.iter().enumerate() {
            let text = format!(
                r#"{{"path":{},"protocol":{},"workload":{},"seed":7}}"#,
                path[rows[0][row] as usize], protocol[rows[1][row] as usize], workload[rows[2][row] as usize],
            );
            assert_eq!(spec, &TrialSpec::from_json(&text).unwrap(), "{row}");
        }
    }

    #[test]
    fn finds_the_first_specification_with_a_mistake() {
        let (protocol, workload) = (owned(&PROTOCOL), owned(&WORKLOAD));
        let at = |rows: [&[u32]; 2]| {
            let columns = [
                Column {
                    name: "protocol",
                    contents: &protocol,
                    rows: rows[0],
                },
                Column {
                    name: "workload",
                    contents: &workload,
                    rows: rows[1],
                },
            ];
            first(&columns, 1, has_no_plan).unwrap()
        };
        assert_eq!(at([&[0, 0, 1], &[0, 2, 2]]), None);
        // Unknown host.
        assert_eq!(at([&[0, 0, 0], &[0, 2, 1]]), Some(2));
        // A file over UDP does not fit.
        assert_eq!(at([&[1, 1, 0], &[2, 0, 0]]), Some(1));
    }

    #[test]
    fn wrong_contents_are_those_that_the_check_of_a_section_refuses() {
        let paths = owned(&[
            r#"{"rate":"1Mbit/s"}"#,
            r#"{"rate":"fast"}"#,
            r#"{"dealy":"1ms"}"#,
        ]);
        assert_eq!(wrong_contents("path", &paths), Ok(vec![1, 2]));
        let flow = r#"{"name":"a","protocol":{"kind":"tcp"},"workload":{"kind":"bulk","rate":"1Mbit/s"}}"#;
        let bad = flow.replace("1Mbit/s", "1 apple");
        let traffic = vec!["[]".to_owned(), format!("[{flow}]"), format!("[{flow},{bad}]")];
        let found = wrong_contents("traffic", &traffic).unwrap();
        assert_eq!(found, [2]);
        assert!(wrong_contents("moon", &paths).is_err());
    }
}
