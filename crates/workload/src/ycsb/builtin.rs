//! The six standard core workloads, as property texts.

/// Properties of the core workload with this letter.
pub(super) fn text(letter: &str) -> Option<&'static str> {
    Some(match letter {
        "a" => UPDATE_HEAVY,
        "b" => READ_MOSTLY,
        "c" => READ_ONLY,
        "d" => READ_LATEST,
        "e" => SHORT_RANGES,
        "f" => READ_MODIFY_WRITE,
        _ => return None,
    })
}

const UPDATE_HEAVY: &str = "\
recordcount=1000
operationcount=1000
readproportion=0.5
updateproportion=0.5
requestdistribution=zipfian
";

const READ_MOSTLY: &str = "\
recordcount=1000
operationcount=1000
readproportion=0.95
updateproportion=0.05
requestdistribution=zipfian
";

const READ_ONLY: &str = "\
recordcount=1000
operationcount=1000
readproportion=1
updateproportion=0
requestdistribution=zipfian
";

const READ_LATEST: &str = "\
recordcount=1000
operationcount=1000
readproportion=0.95
updateproportion=0
insertproportion=0.05
requestdistribution=latest
";

const SHORT_RANGES: &str = "\
recordcount=1000
operationcount=1000
readproportion=0
updateproportion=0
scanproportion=0.95
insertproportion=0.05
requestdistribution=zipfian
maxscanlength=100
scanlengthdistribution=uniform
";

const READ_MODIFY_WRITE: &str = "\
recordcount=1000
operationcount=1000
readproportion=0.5
updateproportion=0
readmodifywriteproportion=0.5
requestdistribution=zipfian
";
