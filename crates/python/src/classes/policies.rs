//! Path policies written in Python: `longfat.extensions.policy`.

use std::fmt;

use foundation::{Duration, Generator, Problem};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyString;
use rand::Rng;
use transport::mptcp::host::HostPaths;
use transport::mptcp::policy::{self, ConnectionPlan, JoinTime, PathPolicy, PolicySettings};
use transport::mptcp::segment::PathIndex;

use super::instance::Instance;
use super::{Class, fail, problems};

event! {
    /// One path of a host.
    "longfat.extensions.policy"
    pub struct HostPath {
        /// Number of the path, from 0.
        number: u8;
        /// RTT without queues: configured, or the smallest sample; 0 if unknown.
        base_rtt: f64 = 0.0,
        /// Latest RTT sample of the host; `base_rtt` before the first.
        rtt: f64 = 0.0,
        /// Average RTT that includes queues but hardly the delays of ACKs.
        usual_rtt: f64 = 0.0,
        /// Highest recent rate of acknowledgements in bit/s; 0 before the first.
        rate: f64 = 0.0,
        /// Recent share of lost segments, 0 to 1.
        loss: f64 = 0.0,
        /// Bytes assigned to the path and not acknowledged.
        unfinished: u64 = 0,
        /// Total bytes acknowledged.
        acknowledged: u64 = 0,
        /// Total segments lost.
        lost: u64 = 0,
        /// Open subflows.
        subflows: u32 = 0,
    }
}

/// The paths of a host at the time of a call.
#[pyclass(frozen, get_all, module = "longfat.extensions.policy")]
pub struct Host {
    pub paths: Vec<Py<HostPath>>,
    pub opened: u64,
}

#[pymethods]
impl Host {
    #[new]
    #[pyo3(signature = (*, paths, opened = 0))]
    const fn new(paths: Vec<Py<HostPath>>, opened: u64) -> Self {
        Self { paths, opened }
    }
}

/// A further subflow.
#[pyclass(frozen, get_all, module = "longfat.extensions.policy")]
pub struct Join {
    pub path: Py<HostPath>,
    pub after_bytes: Option<u64>,
    pub after_time: Option<f64>,
    pub backup: bool,
}

#[pymethods]
impl Join {
    #[new]
    #[pyo3(signature = (path, *, after_bytes = None, after_time = None, backup = false))]
    fn new(
        path: Py<HostPath>,
        after_bytes: Option<u64>,
        after_time: Option<f64>,
        backup: bool,
    ) -> PyResult<Self> {
        if after_bytes.is_some() && after_time.is_some() {
            return Err(crate::calls::wrong("set after_bytes or after_time, not both"));
        }
        if after_time.is_some_and(|seconds| !(0.0..=1e9).contains(&seconds)) {
            return Err(crate::calls::wrong("after_time is out of range: 0 to 1e9 s"));
        }
        Ok(Self {
            path,
            after_bytes,
            after_time,
            backup,
        })
    }
}

event! {
    /// The progress of a connection.
    "longfat.extensions.policy"
    pub struct Progress {
        /// Bytes covered by DATA_ACKs.
        acknowledged: u64;
        /// Bytes written and not acknowledged.
        backlog: u64 = 0,
        /// Time since the connection was opened, in s.
        age: f64 = 0.0,
        /// Numbers of the paths with an open or planned subflow.
        paths: Vec<u16> = Vec::new(),
    }
}

fn host_paths(py: Python<'_>, host: &HostPaths) -> PyResult<Host> {
    let path = |(number, path): (usize, &transport::mptcp::host::PathState)| {
        let view = HostPath {
            number: number as u8,
            base_rtt: path.base_rtt.as_secs_f64(),
            rtt: path.rtt.as_secs_f64(),
            usual_rtt: path.usual_rtt().as_secs_f64(),
            rate: path.rate() * 8.0,
            loss: path.loss(),
            unfinished: path.unfinished,
            acknowledged: path.acknowledged,
            lost: path.lost,
            subflows: path.subflows,
        };
        Py::new(py, view)
    };
    let paths = host.paths().iter().enumerate().map(path);
    Ok(Host {
        paths: paths.collect::<PyResult<_>>()?,
        opened: host.opened(),
    })
}

/// The settings of a Python path policy.
pub struct ClassSettings(pub(super) Class);

impl PolicySettings for ClassSettings {
    fn validate(&self) -> Vec<Problem> {
        problems(self.0.make(()))
    }

    fn beyond_linux(&self) -> Vec<Problem> {
        vec![Problem::new("", "policies in Python run in simulations only")]
    }

    fn build(&self) -> Box<dyn PathPolicy> {
        Box::new(PythonPolicy {
            instance: self.0.create(()),
            follows: self.0.overrides.first() == Some(&true),
        })
    }
}

/// One connection's policy.
struct PythonPolicy {
    instance: Instance,
    follows: bool,
}

impl fmt::Debug for PythonPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PythonPolicy").field(&self.instance.name).finish()
    }
}

/// What both methods return.
const EXPECTED: &str = "expected a sequence of paths of the host and of Join";

impl PythonPolicy {
    /// Calls a method with a view of the host and reads the subflows that it returns.
    fn joins<T>(
        &self,
        method: fn(Python<'_>) -> &Bound<'_, PyString>,
        first: T,
        host: &HostPaths,
    ) -> Vec<policy::Join>
    where
        T: for<'py> IntoPyObject<'py>,
    {
        let arguments = Python::attach(|py| -> PyResult<_> {
            let view = Py::new(py, host_paths(py, host)?)?;
            Ok((first.into_py_any(py)?, view))
        });
        let name = &self.instance.name;
        let arguments = arguments.unwrap_or_else(|error| fail(format!("{name}: {error}")));
        self.instance.call(method, arguments, |py, result| {
            let returned = format!("{} returned", method(py));
            let wrong = || self.instance.wrong(&returned, &result, EXPECTED);
            let entries = result.try_iter().map_err(|_| wrong())?;
            entries
                .map(|entry| self.join(py, &returned, &entry.map_err(|_| wrong())?, host.len()))
                .collect()
        })
    }

    /// Reads one subflow.
    fn join(
        &self,
        py: Python<'_>,
        returned: &str,
        entry: &Bound<'_, PyAny>,
        count: usize,
    ) -> Result<policy::Join, String> {
        let path = |path: &Bound<'_, HostPath>| {
            let number = path.get().number;
            if usize::from(number) < count {
                return Ok(PathIndex(number));
            }
            let range = format!("there is no such path (0 to {})", count.saturating_sub(1));
            Err(self.instance.wrong(returned, path.as_any(), &range))
        };
        if let Ok(one) = entry.cast::<HostPath>() {
            return Ok(policy::Join::immediately(path(one)?));
        }
        let Ok(join) = entry.cast::<Join>() else {
            return Err(self.instance.wrong(returned, entry, EXPECTED));
        };
        let join = join.get();
        let when = match (join.after_bytes, join.after_time) {
            (Some(bytes), _) => JoinTime::AfterBytes(bytes),
            (None, Some(seconds)) => JoinTime::AfterTime(Duration::from_secs_f64(seconds)),
            (None, None) => JoinTime::Immediately,
        };
        Ok(policy::Join {
            path: path(join.path.bind(py))?,
            when,
            backup: join.backup,
        })
    }

    /// Sets the attribute `random`, which draws from the connection's stream.
    fn seed(&self, random: &mut Generator) {
        let seed = random.next_u64();
        let done = Python::attach(|py| -> PyResult<()> {
            let made = py.import("random")?.call_method1("Random", (seed,))?;
            self.instance.object.bind(py).setattr("random", made)
        });
        done.unwrap_or_else(|error| fail(format!("{}.random: {error}", self.instance.name)));
    }
}

impl PathPolicy for PythonPolicy {
    fn open(&mut self, size: Option<u64>, host: &HostPaths, random: &mut Generator) -> ConnectionPlan {
        self.seed(random);
        let joins = self.joins(|py| pyo3::intern!(py, "open"), size, host);
        let Some((first, further)) = joins.split_first() else {
            fail(format!(
                "{}.open returned no path: a connection starts on one",
                self.instance.name
            ))
        };
        if *first != policy::Join::immediately(first.path) {
            fail(format!(
                "{}.open returned a Join with a condition as its first entry: a connection starts at once",
                self.instance.name
            ));
        }
        ConnectionPlan {
            joins: further.to_vec(),
            ..ConnectionPlan::over([first.path])
        }
    }

    fn follows_progress(&self) -> bool {
        self.follows
    }

    fn progress(&mut self, progress: &policy::Progress<'_>, host: &HostPaths) -> Vec<policy::Join> {
        let view = Progress {
            acknowledged: progress.acknowledged,
            backlog: progress.backlog,
            age: progress.age.as_secs_f64(),
            paths: progress.paths.iter().map(|path| path.0.into()).collect(),
        };
        self.joins(|py| pyo3::intern!(py, "progress"), view, host)
    }
}
