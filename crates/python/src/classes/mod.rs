//! Congestion controllers, schedulers, path policies and queue disciplines written in Python: the native side of
//! `longfat.extensions.base`.
//!
//! A name such as "aimd.py:Aimd" in a study resolves to a class. Each connection or link gets an object of the class, and
//! each event is one call under the interpreter lock. An exception of the class stops the trial: it unwinds to
//! [`guarded`], which wraps every entry from Python that runs such objects, and becomes a one-line error.

/// Declares an event as a class whose constructor takes all fields by keyword, some with defaults. Its representation shows
/// the first field. The documentation of a field is that of the Python property.
macro_rules! event {
    (
        $(#[$help:meta])*
        $module:literal
        pub struct $name:ident {
            $(#[$first_help:meta])*
            $first:ident: $id:ty $(, $(#[$key_help:meta])* $key:ident: $type:ty)*;
            $($(#[$other_help:meta])* $other:ident: $of:ty = $default:expr,)+
        }
    ) => {
        $(#[$help])*
        #[pyclass(frozen, get_all, module = $module)]
        pub struct $name {
            $(#[$first_help])*
            pub $first: $id,
            $($(#[$key_help])* pub $key: $type,)*
            $($(#[$other_help])* pub $other: $of,)+
        }

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = (*, $first, $($key,)* $($other = $default),+))]
            #[allow(clippy::too_many_arguments, reason = "the keywords of one Python function")]
            const fn new($first: $id, $($key: $type,)* $($other: $of),+) -> Self {
                Self { $first, $($key,)* $($other),+ }
            }

            fn __repr__(&self) -> String {
                format!(concat!(stringify!($name), "(", stringify!($first), "={})"), self.$first)
            }
        }
    };
}

pub mod controllers;
mod instance;
mod limit;
pub mod policies;
pub mod queues;
pub mod schedulers;

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use foundation::extension::{Accepts, Registration, install_resolver};
use foundation::{Instant, Problem};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::PyType;
use serde_json::{Map, Value};

use crate::calls::wrong;
use instance::{Instance, bounded, describe};
pub use limit::{CallStopped, cancellable};

/// Returns a time in seconds since the start of the trial.
fn seconds(at: Instant) -> f64 {
    (at - Instant::ZERO).as_secs_f64()
}

/// A one-line error of a Python class, propagated by unwinding.
struct Fault(String);

/// Stops the trial with a one-line error.
fn fail(message: String) -> ! {
    resume_unwind(Box::new(Fault(message)))
}

/// Runs `work`, which may call Python classes; returns the error of the first that failed.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload: Box<dyn Any + Send>| {
        match payload.downcast::<Fault>() {
            Ok(fault) => fault.0,
            // A bug in longfat itself.
            Err(payload) => resume_unwind(payload),
        }
    })
}

/// Returns the exception for an error of [`guarded`]: that of a signal handler, if Ctrl-C ended the call.
pub fn fault(message: String) -> PyErr {
    let interrupted = Python::attach(|py| py.check_signals().err());
    interrupted.unwrap_or_else(|| wrong(message))
}

/// A Python class of a study, and its keys.
struct Class {
    name: Arc<str>,
    class: Py<PyType>,
    keys: Map<String, Value>,
    /// Limit of a call.
    limit: Duration,
    /// Whether the class overrides each optional method of its base; only these are called.
    overrides: Vec<bool>,
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Class")
            .field("name", &self.name)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl Class {
    /// Creates an object. `context` are the arguments of the base's `_make` before the settings.
    fn make<A>(&self, context: A) -> Result<Instance, String>
    where
        A: for<'py> PyCallArgs<'py>,
    {
        bounded(&self.name, self.limit, |py| {
            let made = || -> PyResult<Py<PyAny>> {
                let text = Value::Object(self.keys.clone()).to_string();
                let keys = py.import("json")?.call_method1("loads", (text,))?;
                let maker = self.class.bind(py).call_method1("_maker", (keys,))?;
                Ok(maker.call1(context)?.unbind())
            };
            let object = made().map_err(|error| format!("{}: {}", self.name, describe(py, &error)))?;
            Ok(Instance {
                name: Arc::clone(&self.name),
                object,
                limit: self.limit,
            })
        })
    }

    /// Creates an object; stops the trial if that fails.
    fn create<A>(&self, context: A) -> Instance
    where
        A: for<'py> PyCallArgs<'py>,
    {
        self.make(context).unwrap_or_else(|message| fail(message))
    }
}

/// Returns the reason why an object could not be created, as a list of problems.
fn problems<T>(made: Result<T, String>) -> Vec<Problem> {
    made.err()
        .map(|message| Problem::new("", message))
        .into_iter()
        .collect()
}

/// Imports the class of a name and describes it to the role's reader; `role` is the name of the Python base class.
fn resolve<R, S>(role: &str, name: &str, settings: fn(Class) -> S) -> Result<Registration<R>, String>
where
    R: Accepts<S> + ?Sized,
    S: 'static,
{
    Python::attach(|py| {
        let found = || -> PyResult<_> {
            let described = py
                .import("longfat.extensions.base")?
                .call_method1("_describe", (role, name))?;
            type Described<'py> = (Bound<'py, PyType>, String, String, Vec<bool>);
            let (class, help, schema, overrides): Described<'_> = described.extract()?;
            let limit: f64 = class.getattr("call_limit_s")?.extract()?;
            let schema: Value = serde_json::from_str(&schema).map_err(wrong)?;
            let schema = schemars::Schema::try_from(schema).map_err(wrong)?;
            Ok((
                class.unbind(),
                help,
                schema,
                overrides,
                Duration::from_secs_f64(limit),
            ))
        };
        let (class, help, schema, overrides, limit) = found().map_err(|error| error.value(py).to_string())?;
        let shared: Arc<str> = name.into();
        Ok(Registration::dynamic(
            name.to_owned(),
            help,
            schema,
            move |keys| {
                let class = Class {
                    name: Arc::clone(&shared),
                    class: Python::attach(|py| class.clone_ref(py)),
                    keys: keys.clone(),
                    limit,
                    overrides: overrides.clone(),
                };
                Ok((R::shared(settings(class)), keys))
            },
        ))
    })
}

/// Lets specifications name Python classes.
pub fn install() {
    /// Installs the reader of a role. A second import of the module finds the same resolver installed.
    fn role<R, S>(base: &'static str, settings: fn(Class) -> S)
    where
        R: Accepts<S> + ?Sized,
        S: 'static,
    {
        let _ = install_resolver::<R>(Box::new(move |name| resolve(base, name, settings)));
    }
    role::<dyn transport::congestion::ControllerSettings, _>(
        "CongestionController",
        controllers::ClassSettings,
    );
    role::<dyn transport::mptcp::scheduler::SchedulerSettings, _>("Scheduler", schedulers::ClassSettings);
    role::<dyn transport::mptcp::policy::PolicySettings, _>("PathPolicy", policies::ClassSettings);
    role::<dyn network::queue::DisciplineSettings, _>("QueueDiscipline", queues::ClassSettings);
}
