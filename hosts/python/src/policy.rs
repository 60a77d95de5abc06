//! Merge policies that are written in Python.

use crate::error::bad_argument;
use lsmith_policy::{MergePolicy, Registry, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, TreeView};
use pyo3::prelude::*;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A policy whose decisions a Python function makes. It gets the tree as text, and returns a plan
/// as text, or None.
pub(crate) struct PythonPolicy {
    name: String,
    next_merge: Py<PyAny>,
    shape: Shape,
    /// The first exception of the function.
    failed: Mutex<Option<PyErr>>,
}

impl fmt::Debug for PythonPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonPolicy").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PythonPolicy {
    fn plan(&self, view: &TreeView) -> PyResult<Option<MergePlan>> {
        Python::attach(|py| {
            let answer = self.next_merge.bind(py).call1((view.to_string(),))?;
            if answer.is_none() {
                return Ok(None);
            }
            let text: String = answer.extract()?;
            let bad = |error| bad_argument(format!("{}: plan `{text}`: {error}", self.name));
            text.parse().map(Some).map_err(bad)
        })
    }

    /// Fails with the first exception of the function, if there was one.
    pub(crate) fn check(&self) -> PyResult<()> {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.take().map_or(Ok(()), Err)
    }
}

impl MergePolicy for PythonPolicy {
    fn spec(&self) -> Spec {
        Spec::bare(self.name.clone())
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.is_some() {
            return None;
        }
        drop(failed);
        let answer = self.plan(view);
        failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        answer.unwrap_or_else(|error| {
            failed.get_or_insert(error);
            None
        })
    }

    fn shape(&self) -> Shape {
        self.shape
    }
}

/// A policy as Python gives it: a spec, or an object with `name`, `next_merge` and `runs_max`.
pub(crate) struct Chosen {
    pub(crate) policy: Arc<dyn MergePolicy>,
    python: Option<Arc<PythonPolicy>>,
}

impl Chosen {
    /// Returns the policy that `given` is.
    pub(crate) fn of(given: &Bound<'_, PyAny>) -> PyResult<Chosen> {
        if let Ok(spec) = given.extract::<String>() {
            let policy = Registry::builtin().build(&spec).map_err(bad_argument)?;
            return Ok(Chosen { policy, python: None });
        }
        let runs_max: Option<u64> = given.getattr("runs_max")?.extract()?;
        let python = Arc::new(PythonPolicy {
            name: given.getattr("name")?.extract()?,
            next_merge: given.getattr("next_merge")?.unbind(),
            shape: runs_max.map_or(Shape::Unmerged, |runs_max| Shape::Stack { runs_max }),
            failed: Mutex::default(),
        });
        Ok(Chosen { policy: Arc::<PythonPolicy>::clone(&python), python: Some(python) })
    }

    /// Fails if the function of the policy has raised an exception.
    pub(crate) fn check(&self) -> PyResult<()> {
        self.python.as_ref().map_or(Ok(()), |python| python.check())
    }
}
