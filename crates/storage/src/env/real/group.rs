//! The memory that control groups leave to this process.
//!
//! A process belongs to one group of the second version, and to one of the first version that
//! limits memory, or to either. The groups above them limit it too. In a container the group's path
//! may not exist, because the container sees its own group as the topmost. So the search goes up
//! from where the path leads, and looks at what there is.

use std::fs;
use std::path::{Path, PathBuf};

/// Where groups of the second version are.
const UNIFIED: [&str; 2] = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];

/// Where groups of the first version that limit memory are.
const MEMORY: &str = "sys/fs/cgroup/memory";

/// The files of a group that hold limits, in either version.
const LIMITS: [&str; 3] = ["memory.max", "memory.high", "memory.limit_in_bytes"];

/// Limits from here on are none: the first version says so by a number near 2^63.
const NONE: u64 = 1 << 60;

/// Returns the least limit of the groups of this process, in bytes, if there is any.
pub(super) fn memory_max() -> Option<u64> {
    least_below(Path::new("/"))
}

/// Returns the least limit, with `root` in place of the topmost folder of the system.
fn least_below(root: &Path) -> Option<u64> {
    let own = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let groups = own.lines().flat_map(|line| groups_of(root, line));
    groups.flat_map(|(top, group)| limits_above(&top, &group)).min()
}

/// Returns the topmost folders for a line of the list of groups, each with the folder of the group.
/// A line is `number:controllers:path`. There are no controllers in the second version.
fn groups_of(root: &Path, line: &str) -> Vec<(PathBuf, PathBuf)> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let tops: &[&str] = match controllers {
        "" => &UNIFIED,
        _ if controllers.split(',').any(|controller| controller == "memory") => &[MEMORY],
        _ => &[],
    };
    let below = |top: &&str| (root.join(top), root.join(top).join(path.trim_start_matches('/')));
    tops.iter().map(below).collect()
}

/// Returns the limits of `group` and of the groups above it, up to `top`.
fn limits_above(top: &Path, group: &Path) -> Vec<u64> {
    let folders = group.ancestors().take_while(|folder| folder.starts_with(top));
    let files = folders.flat_map(|folder| LIMITS.map(|file| folder.join(file)));
    let texts = files.filter_map(|file| fs::read_to_string(file).ok());
    // `max` is no number.
    let limits = texts.filter_map(|text| text.trim().parse::<u64>().ok());
    limits.filter(|limit| *limit < NONE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn least(files: &[(&str, &str)]) -> Option<u64> {
        least_below(root(files).path())
    }

    #[test]
    fn least_limit_of_a_group_and_those_above_it_counts() {
        let own = ("proc/self/cgroup", "0::/app/one\n");
        let limits = |group: &'static str, above: &'static str| {
            let of_group = ("sys/fs/cgroup/app/one/memory.max", group);
            [own, of_group, ("sys/fs/cgroup/app/memory.max", above)]
        };
        assert_eq!(least(&limits("5000\n", "7000\n")), Some(5000));
        assert_eq!(least(&limits("5000\n", "3000\n")), Some(3000));
        assert_eq!(least(&limits("max\n", "3000\n")), Some(3000));
        assert_eq!(least(&limits("max\n", "max\n")), None);
        let high = ("sys/fs/cgroup/app/one/memory.high", "2000\n");
        assert_eq!(least(&[own, high]), Some(2000));
        // Another group than its own.
        assert_eq!(least(&[own, ("sys/fs/cgroup/app/two/memory.max", "2000")]), None);
    }

    #[test]
    fn first_version_has_a_group_of_its_own_for_memory() {
        let own = "5:cpu,cpuacct:/other\n4:freezer,memory:/app\n1:name=systemd:/\n0::/\n";
        let files = |limit: &'static str| {
            let other = ("sys/fs/cgroup/memory/other/memory.limit_in_bytes", "1000\n");
            let group = ("sys/fs/cgroup/memory/app/memory.limit_in_bytes", limit);
            [("proc/self/cgroup", own), other, group]
        };
        assert_eq!(least(&files("6000\n")), Some(6000));
        assert_eq!(least(&files("9223372036854771712\n")), None);
    }

    #[test]
    fn container_sees_its_own_group_at_the_top() {
        let own = ("proc/self/cgroup", "4:memory:/docker/0123\n0::/docker/0123\n");
        let top = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "8000\n");
        assert_eq!(least(&[own, top]), Some(8000));
        assert_eq!(least(&[own, ("sys/fs/cgroup/memory.max", "4000\n")]), Some(4000));
    }

    #[test]
    fn systems_without_groups_limit_nothing() {
        assert_eq!(least(&[]), None);
        assert_eq!(least(&[("proc/self/cgroup", "no line of groups\n")]), None);
    }
}
