//! Helpers for environments of tests that observe a disk.

/// Forwards the methods of `Env` to the field `disk`: all of them, or all but `rename` or `list`.
macro_rules! left_to_the_disk {
    () => {
        left_to_the_disk!(but rename);

        fn rename(&self, from: &std::path::Path, to: &std::path::Path) -> std::io::Result<()> {
            self.disk.rename(from, to)
        }
    };
    (but rename) => {
        left_to_the_disk!(but rename and list);

        fn list(&self, dir: &std::path::Path) -> std::io::Result<Vec<String>> {
            self.disk.list(dir)
        }
    };
    (but list) => {
        left_to_the_disk!(but rename and list);

        fn rename(&self, from: &std::path::Path, to: &std::path::Path) -> std::io::Result<()> {
            self.disk.rename(from, to)
        }
    };
    (but rename and list) => {
        fn create_dir_all(&self, dir: &std::path::Path) -> std::io::Result<()> {
            self.disk.create_dir_all(dir)
        }

        fn file_bytes(&self, path: &std::path::Path) -> std::io::Result<u64> {
            self.disk.file_bytes(path)
        }

        fn sync_dir(&self, dir: &std::path::Path) -> std::io::Result<()> {
            self.disk.sync_dir(dir)
        }

        fn sync_file(&self, path: &std::path::Path) -> std::io::Result<()> {
            self.disk.sync_file(path)
        }

        fn lock(
            &self,
            dir: &std::path::Path,
        ) -> std::io::Result<std::sync::Arc<dyn lsmith::env::HeldDir>> {
            self.disk.lock(dir)
        }

        fn hold(
            &self,
            dir: &std::path::Path,
        ) -> std::io::Result<std::sync::Arc<dyn lsmith::env::HeldDir>> {
            self.disk.hold(dir)
        }

        fn absolute(&self, path: &std::path::Path) -> std::io::Result<std::path::PathBuf> {
            self.disk.absolute(path)
        }

        fn lock_file(
            &self,
            path: &std::path::Path,
        ) -> std::io::Result<Box<dyn std::fmt::Debug + Send + Sync>> {
            self.disk.lock_file(path)
        }

        fn free_bytes(&self, dir: &std::path::Path) -> std::io::Result<u64> {
            self.disk.free_bytes(dir)
        }
    };
}
