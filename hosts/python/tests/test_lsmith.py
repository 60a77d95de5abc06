"""The package as its users see it: ``python -m unittest discover hosts/python/tests``."""

import contextlib
import io
import json
import os
import pathlib
import re
import tempfile
import threading
import unittest

import lsmith

ROOT = pathlib.Path(__file__).resolve().parents[3]
WORKLOAD = "churn(keys=2k, ops=20k, value=100B)"


def rows(table):
    return table if isinstance(table, list) else table.to_dict("records")


class Store(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def test_what_is_written_is_there_after_reopening(self):
        with lsmith.Store(self.dir.name, policy="tiered(ratio=4)", memtable_bytes=64 << 10) as store:
            words = store.keyspace("words")
            for number in range(5000):
                words[b"%05d" % number] = b"v%d" % number
            del words[b"00007"]
            words.delete_range(b"00100", b"00200")
            self.assertEqual(store.keyspaces(), ["words"])
            store.persist()
        with lsmith.Store(pathlib.Path(self.dir.name)) as store:
            words = store.keyspace("words")
            self.assertEqual(words[b"04999"], b"v4999")
            self.assertIsNone(words.get(b"00007"))
            self.assertNotIn(b"00150", words)
            self.assertEqual(len(list(words)), 5000 - 1 - 100)
            self.assertEqual(words.merge_policy(), "tiered(ratio=4)")
            with self.assertRaises(KeyError) as missing:
                words[b"00007"]
            self.assertEqual(missing.exception.args, (b"00007",))

    def test_ranges_go_both_ways(self):
        with lsmith.Store(self.dir.name) as store:
            keyspace = store.keyspace("default")
            for key in [b"a", b"b1", b"b2", b"c"]:
                keyspace[key] = key.upper()
            self.assertEqual(list(keyspace.range(b"b", b"c")), [(b"b1", b"B1"), (b"b2", b"B2")])
            self.assertEqual([key for key, _ in keyspace.range(reverse=True)][:2], [b"c", b"b2"])
            self.assertEqual([key for key, _ in keyspace.prefix(b"b")], [b"b1", b"b2"])

    def test_batches_and_snapshots_are_whole(self):
        with lsmith.Store(self.dir.name) as store:
            left, right = store.keyspace("left"), store.keyspace("right")
            left[b"key"] = b"before"
            before = store.snapshot()
            batch = lsmith.Batch()
            batch.put(left, b"key", b"after")
            batch.put(right, b"key", b"after")
            batch.delete(left, b"missing")
            self.assertEqual(len(batch), 3)
            store.write(batch, mode="sync_data")
            self.assertEqual((left[b"key"], right[b"key"]), (b"after", b"after"))
            self.assertEqual(before.get(left, b"key"), b"before")
            self.assertIsNone(before.get(right, b"key"))
            self.assertEqual(list(before.range(left)), [(b"key", b"before")])

    def test_threads_write_side_by_side(self):
        with lsmith.Store(self.dir.name, memtable_bytes=64 << 10) as store:
            keyspace = store.keyspace("default")

            def write(thread):
                for number in range(2000):
                    keyspace[b"%d-%d" % (thread, number)] = b"x" * 50

            threads = [threading.Thread(target=write, args=(thread,)) for thread in range(4)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            store.settle()
            self.assertEqual(sum(1 for _ in keyspace), 8000)
            self.assertEqual(store.stats()["entries_written"], 8000)

    def test_errors_are_exceptions_with_a_kind(self):
        with lsmith.Store(self.dir.name) as store:
            with self.assertRaises(lsmith.Error) as locked:
                lsmith.Store(self.dir.name)
            self.assertEqual(locked.exception.kind, "Locked")
            with self.assertRaisesRegex(lsmith.Error, "did you mean `tiered`"):
                store.keyspace("default").set_merge_policy("tierd(ratio=4)")
            with self.assertRaisesRegex(lsmith.Error, "expected one of: buffer"):
                store.persist(mode="maybe")

    def test_transactions_are_whole_and_see_their_own_writes(self):
        with lsmith.Store(self.dir.name) as store:
            left, right = store.keyspace("left"), store.keyspace("right")
            left[b"a"], left[b"b"] = b"1", b"2"
            with store.transaction() as change:
                change.put(left, b"c", b"3")
                change.delete(left, b"a")
                change.put(right, b"a", b"1")
                self.assertEqual(change.get(left, b"c"), b"3")
                self.assertIsNone(change.get(left, b"a"))
                self.assertEqual(list(change.range(left, b"b")), [(b"b", b"2"), (b"c", b"3")])
                backward = change.range(left, reverse=True)
                self.assertEqual([key for key, _ in backward], [b"c", b"b"])
                self.assertEqual(list(change.prefix(right, b"a")), [(b"a", b"1")])
                self.assertEqual(len(change), 3)
                self.assertEqual(dict(left), {b"a": b"1", b"b": b"2"})
            self.assertEqual(dict(left), {b"b": b"2", b"c": b"3"})
            self.assertEqual(dict(right), {b"a": b"1"})
            with self.assertRaisesRegex(lsmith.Error, "the transaction has ended"):
                change.get(left, b"a")
            with self.assertRaisesRegex(lsmith.Error, "expected one of: serializable, snapshot"):
                store.transaction("dirty")

    def test_exception_takes_a_transaction_back(self):
        with lsmith.Store(self.dir.name) as store:
            keyspace = store.keyspace("default")
            with self.assertRaisesRegex(ValueError, "enough"):
                with store.transaction() as change:
                    change.put(keyspace, b"a", b"1")
                    raise ValueError("enough")
            with store.transaction() as change:
                change.put(keyspace, b"b", b"1")
                change.rollback()
            change = store.transaction()
            change.put(keyspace, b"c", b"1")
            change.set_savepoint()
            change.put(keyspace, b"d", b"1")
            change.delete_range(keyspace, b"a", b"c")
            change.rollback_to_savepoint()
            self.assertGreater(change.commit("sync_data"), 0)
            self.assertEqual(list(keyspace), [(b"c", b"1")])
            with self.assertRaisesRegex(lsmith.Error, "the transaction has ended"):
                change.commit()

    def test_conflicts_are_what_the_isolation_says(self):
        def conflicts(isolation, read):
            with lsmith.Store(self.dir.name) as store:
                keyspace = store.keyspace("default")
                keyspace[b"read"] = b"1"
                change = store.transaction(isolation)
                getattr(change, read)(keyspace, b"read")
                change.put(keyspace, b"written", b"1")
                keyspace[b"read"] = b"2"
                try:
                    change.commit()
                except lsmith.Error as error:
                    self.assertEqual(error.kind, "Conflict")
                    return True
                return False

        self.assertTrue(conflicts("serializable", "get"))
        self.assertFalse(conflicts("snapshot", "get"))
        self.assertTrue(conflicts("snapshot", "get_for_update"))

    def test_recording_is_played_as_a_workload(self):
        folder = pathlib.Path(self.dir.name) / "recordings"
        with lsmith.Store(pathlib.Path(self.dir.name) / "store", record=folder, record_one_in=1) as store:
            fruit = store.keyspace("fruit")
            for number in range(3000):
                fruit[b"%05d" % (number % 1000)] = b"x" * 100
            self.assertEqual(store.recording()["one_in"], 1)
            told = store.stop_recording()
            self.assertEqual((told["ops"], told["ended"]), (3000, None))
            self.assertIsNone(store.stop_recording())
            again = store.record(folder, one_in=1, base=False)
            self.assertEqual(pathlib.Path(again), folder / "0002.recording")
            fruit[b"more"] = b"1"
            self.assertEqual(store.stop_recording()["ops"], 1)
        trace = f"trace({told['path']}, keyspace=fruit)"
        found = lsmith.simulate("tiered(ratio=3)", trace, memtable="16KiB")
        # 3000 entries of about 113 bytes.
        self.assertGreater(found["flushes"], 12)

    def test_a_store_with_a_key_opens_only_with_it(self):
        folder = pathlib.Path(self.dir.name)
        old, new = folder / "old.key", folder / "new.key"
        old.write_bytes(b"o" * 32)
        new.write_text("ab" * 32 + "\n")
        with lsmith.Store(folder / "secret", key_file=old) as store:
            store.keyspace("default")[b"lsm"] = b"planted value"
        files = [path.read_bytes() for path in (folder / "secret").rglob("*") if path.is_file()]
        self.assertFalse(any(b"planted value" in content for content in files))
        for options in [{}, {"key_file": new}]:
            with self.assertRaises(lsmith.Error) as caught:
                lsmith.Store(folder / "secret", **options)
            self.assertEqual(caught.exception.kind, "Unsupported")
        with self.assertRaises(lsmith.Error):
            lsmith.Store(folder / "secret", older_key_file=old)
        with lsmith.Store(folder / "secret", key_file=new, older_key_file=old) as store:
            self.assertEqual(store.keyspace("default")[b"lsm"], b"planted value")

    def test_closing_takes_all_handles_back(self):
        store = lsmith.Store(self.dir.name)
        keyspace = store.keyspace("default")
        keyspace[b"a"] = b"1"
        batch = lsmith.Batch()
        batch.put(keyspace, b"b", b"2")
        snapshot, items = store.snapshot(), keyspace.range()
        change = store.transaction()
        change.put(keyspace, b"c", b"3")
        store.close()
        uses = [
            lambda: store.keyspace("default"),
            lambda: keyspace.get(b"a"),
            lambda: keyspace.put(b"a", b"2"),
            lambda: snapshot.get(keyspace, b"a"),
            lambda: next(items),
            lambda: len(batch),
            lambda: change.commit(),
        ]
        for use in uses:
            with self.assertRaisesRegex(lsmith.Error, "the store is closed"):
                use()
        store.close()
        with lsmith.Store(self.dir.name) as again:
            self.assertEqual(list(again.keyspace("default")), [(b"a", b"1")])


class Lab(unittest.TestCase):
    def test_simulation_and_store_agree_in_lockstep(self):
        compared = rows(lsmith.compare("leveled(ratio=4); tiered", WORKLOAD, memtable="64KiB"))
        self.assertEqual(len(compared), 2)
        simulated = lsmith.simulate("leveled(ratio=4)", WORKLOAD, memtable="64KiB")
        row = compared[0]
        engine = row["engine.write_cost_system"] if "engine.write_cost_system" in row else row[
            "engine"]["write_cost_system"]
        self.assertEqual(engine, simulated["write_cost_system"])

    def test_time_is_simulated_on_a_machine(self):
        machine = "machine(cores=2, write=2000, flush_entry=500, merge_entry=500)"
        time = lsmith.simulate("tiered", WORKLOAD, memtable="64KiB", machine=machine)["time"]
        self.assertEqual(time["ops"], 20_000)
        self.assertGreaterEqual(time["seconds"], 0.04)

    def test_advice_formulas_and_lists(self):
        best = lsmith.tune(WORKLOAD, memtable="64KiB", read_cost_max=4)["best"]
        self.assertLessEqual(best["read_cost_mean"], 4)
        self.assertGreater(best["merge_bytes_max"], 150_000)
        limits = {"memtable": "64KiB", "read_cost_max": 4, "longest_merge": "150kB"}
        bounded = lsmith.tune(WORKLOAD, **limits)["best"]
        self.assertLessEqual(bounded["merge_bytes_max"], 150_000)
        with self.assertRaisesRegex(lsmith.Error, "`much` is not a size"):
            lsmith.tune(WORKLOAD, longest_merge="much")
        self.assertGreater(lsmith.model("leveldb", keys=10_000_000)["write_cost_user"], 1)
        names = [row["name"] for row in rows(lsmith.policies())]
        self.assertIn("minlatency", names)
        with self.assertRaisesRegex(lsmith.Error, "unknown workload"):
            lsmith.simulate("tiered", "laod(keys=2k)")

    def test_doctor_reads_a_directory(self):
        found = lsmith.doctor(ROOT / "crates/doctor/tests/data/leveled")
        self.assertEqual(found["version"], "7.8.3")
        with self.assertRaises(lsmith.Error):
            lsmith.doctor(ROOT / "nowhere")


def pairs(view):
    """Merges the two newest runs on storage whenever there are more than three."""
    levels = [line for line in view.splitlines() if re.match(r"L\d+ r", line)]
    runs = re.findall(r"\b(r\d+)\[", " ".join(levels))
    return f"merge {runs[0]} {runs[1]} over .. in place" if len(runs) > 3 else None


class OwnPolicy(unittest.TestCase):
    def test_policy_in_python_is_simulated_and_runs_on_the_store(self):
        policy = lsmith.Policy("pairs", pairs, runs_max=4)
        simulated = lsmith.simulate(policy, WORKLOAD, memtable="64KiB")
        self.assertEqual(simulated["policy"], "pairs")
        self.assertGreater(simulated["merges"], 5)
        self.assertLessEqual(simulated["runs_max"], 4)

    def test_exceptions_of_a_policy_come_out(self):
        def broken(view):
            raise ValueError("no plan today")

        with self.assertRaisesRegex(ValueError, "no plan today"):
            lsmith.simulate(lsmith.Policy("broken", broken), WORKLOAD, memtable="64KiB")
        with self.assertRaisesRegex(lsmith.Error, "nonsense: plan `what`"):
            nonsense = lsmith.Policy("nonsense", lambda view: "what")
            lsmith.simulate(nonsense, WORKLOAD, memtable="64KiB")

    def test_laws_find_a_policy_that_never_merges_enough(self):
        self.assertIsNone(lsmith.check_laws("tiered(ratio=3)"))
        self.assertIsNotNone(lsmith.check_laws(lsmith.Policy("never", lambda view: None, 3)))


class Page(unittest.TestCase):
    def test_examples_of_the_page_run(self):
        page = (ROOT / "docs/python.md").read_text()
        blocks = re.findall(r"```python\n(.*?)```", page, re.S)
        self.assertEqual(len(blocks), 4)
        # Smaller, and with a store that is here.
        for shown, run in [
            ("churn(keys=100k, ops=400k,", "churn(keys=2k, ops=20k,"),
            ("256KiB", "64KiB"),
            ('"/var/lib/app/rocksdb"', repr(str(ROOT / "crates/doctor/tests/data/leveled"))),
            ("table.plot.scatter(", "print("),
        ]:
            self.assertIn(shown, page)
            blocks = [block.replace(shown, run) for block in blocks]
        names = {"rows": rows}
        with tempfile.TemporaryDirectory() as folder:
            blocks = [block.replace('"data"', repr(folder)) for block in blocks]
            with contextlib.redirect_stdout(io.StringIO()):
                for block in blocks:
                    exec(compile(block, "docs/python.md", "exec"), names)
        row = rows(names["table"])[0]
        for figure in re.findall(r'"engine\.([a-z_.]+)"', page):
            self.assertTrue(figure in row.get("engine", {}) or f"engine.{figure}" in row, figure)


class Notebook(unittest.TestCase):
    def test_cells_of_the_notebook_run_in_their_order(self):
        notebook = json.loads((ROOT / "docs/choosing.ipynb").read_text())
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        self.assertGreater(len(cells), 5)
        os.environ.setdefault("MPLBACKEND", "agg")
        names = {}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            for number, cell in enumerate(cells):
                self.assertEqual(cell["outputs"], [], "a notebook is kept without outputs")
                exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
        self.assertIn("{b'ada': b'93', b'bob': b'7'}", printed.getvalue())
        self.assertLessEqual(names["best"]["read_cost_mean"], 3)
        self.assertGreater(names["found"]["write_cost_system"], 1)


if __name__ == "__main__":
    unittest.main()
