use lsmith_spec::Spec;
use lsmith_workload::{Workload, WorkloadInfo};

use crate::{build, build_with, refused};

/// A trace made of the sample in the description of the format.
fn sample() -> &'static [u8] {
    Workload::TRACE_FORMAT.split("\n\n").next().expect("a sample").as_bytes()
}

/// The shortest spec of a kind.
fn bare(info: &WorkloadInfo) -> String {
    match info.name {
        "ycsb" => "ycsb(a)".to_owned(),
        "trace" => "trace(a.csv)".to_owned(),
        name => name.to_owned(),
    }
}

#[test]
fn defaults_in_the_tables_are_those_of_the_workloads() {
    for info in Workload::INFOS {
        let spec = build_with(&bare(info), sample()).unwrap().spec().clone();
        for param in info.params.iter().chain(WorkloadInfo::COMMON) {
            if let Some(default) = param.default {
                assert_eq!(spec.param(param.name), Some(default), "{} {}", info.name, param.name);
            }
        }
        let listed = |name: &str| {
            info.params.iter().chain(WorkloadInfo::COMMON).any(|param| param.name == name)
        };
        for (name, _) in &spec.params {
            assert!(listed(name), "{} does not list {name}", info.name);
        }
    }
}

#[test]
fn unnamed_arguments_are_listed_where_they_are_needed() {
    for info in Workload::INFOS {
        let needed = build_with(info.name, sample()).is_err();
        assert_eq!(needed, info.argument.is_some(), "{}", info.name);
    }
    assert!(refused("load(5)").contains("takes only parameters"));
}

#[test]
fn examples_make_operations() {
    for info in Workload::INFOS {
        let spec: Spec = info.example.parse().unwrap();
        assert_eq!(spec.name, info.name);
        let workload = build_with(info.example, sample()).unwrap();
        assert!(workload.ops().all(|op| op.is_ok()), "{}", info.example);
        assert!(workload.ops_max() >= 3, "{}", info.example);
    }
}

#[test]
fn sample_of_the_trace_format_is_a_trace() {
    let workload = build_with("trace(a.csv)", sample()).unwrap();
    let ops: Vec<_> = workload.ops().map(Result::unwrap).collect();
    assert_eq!((ops.len(), ops[0].value_bytes), (3, 1204));
    assert_eq!(build("load(keys=3)").ops_max(), 3);
}
