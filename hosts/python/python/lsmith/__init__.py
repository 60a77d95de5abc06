"""An LSM key-value store with a choice of merge policies, and a lab for choosing one.

The store::

    import lsmith
    with lsmith.Store("data") as store:
        words = store.keyspace("words")
        words[b"apple"] = b"red"
        for key, value in words.range(b"a", b"b"):
            print(key, value)

The lab: ``compare``, ``simulate``, ``tune``, ``model``, ``doctor``, ``policies``. What they return
has the names that ``lsmith --json`` prints. Tables are data frames if pandas is installed, else
lists of dicts.
"""

import json
import os

from . import _lsmith
from ._lsmith import Batch, Error, Keyspace, Snapshot, Store, Transaction

__all__ = [
    "Batch",
    "Error",
    "Keyspace",
    "Policy",
    "Snapshot",
    "Store",
    "Transaction",
    "check_laws",
    "compare",
    "doctor",
    "model",
    "policies",
    "simulate",
    "tune",
]

try:
    import pandas
except ImportError:
    pandas = None


class Policy:
    """A merge policy that is written in Python, for the simulators and for ``compare``.

    ``next_merge`` gets a tree as text and returns a plan as text, or None. It must be pure: the
    same text gives the same plan. ``runs_max`` is the most runs that the policy allows, if it keeps
    one stack of runs; writers are held back beyond it. ``check_laws`` says what a policy breaks.
    """

    def __init__(self, name, next_merge, runs_max=None):
        self.name = name
        self.next_merge = next_merge
        self.runs_max = runs_max


def _frame(rows):
    """Returns rows as a data frame, with dots in the names of nested figures."""
    return rows if pandas is None else pandas.json_normalize(rows)


def simulate(policy, workload, memtable="4MiB", machine=None, threads=2):
    """Simulates a policy key by key. With a ``machine``, the line that ``lsmith calibrate`` prints,
    ``time`` has what a free run would take. Returns a dict."""
    return json.loads(_lsmith.simulate(policy, workload, memtable, machine, threads))


def compare(policies, workload, memtable="4MiB", free=False, threads=2):
    """Runs policies on the real store, beside what simulations and formulas predict. ``policies``
    is a list of specs and of ``Policy``, or specs separated by ``;``. Returns a table."""
    if isinstance(policies, str):
        policies = [spec.strip() for spec in policies.split(";")]
    return _frame(json.loads(_lsmith.compare(policies, workload, memtable, free, threads)))


def tune(
    workload,
    memtable="4MiB",
    read_cost_max=None,
    scan_cost_max=None,
    space_cost_max=None,
    longest_merge=None,
):
    """Finds the best policy for a workload, within limits. ``longest_merge`` is a size, as
    ``"64MiB"``: no merge may write more. Returns a dict."""
    limits = (read_cost_max, scan_cost_max, space_cost_max, longest_merge)
    return json.loads(_lsmith.tune(workload, memtable, *limits))


def model(policy, keys=1_000_000, zipf=0.0, item="1kB", memtable="4MiB", requests=None):
    """Computes the costs of a policy by formula, for random puts. Returns a dict."""
    requests = 10 * keys if requests is None else requests
    return json.loads(_lsmith.model(policy, keys, zipf, item, memtable, requests))


def doctor(path):
    """Says what the compactions of a RocksDB cost, from its directory or from one LOG. Returns a
    dict."""
    return json.loads(_lsmith.doctor(os.fspath(path)))


def policies():
    """Returns a table of all policies, with their parameters."""
    return _frame(json.loads(_lsmith.policies()))


def check_laws(policy):
    """Returns what the policy breaks of the laws that every policy must keep, or None."""
    return _lsmith.check_laws(policy)
