//! Calls of the system that the standard library does not have.

#![allow(unsafe_code, reason = "the calls are foreign; each is made with plain numbers or paths")]

use libc::{c_int, c_ulong};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// Gives this thread, and all that it starts, mounts that nobody else sees.
pub(crate) fn own_mounts() -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    mount("none", Path::new("/"), "none", libc::MS_REC | libc::MS_PRIVATE, "")
}

pub(crate) fn mount(
    what: &str,
    at: &Path,
    kind: &str,
    flags: c_ulong,
    options: &str,
) -> io::Result<()> {
    let (what, kind) = (CString::new(what)?, CString::new(kind)?);
    let (at, options) = (text(at), CString::new(options)?);
    let (what, at, kind) = (what.as_ptr(), at.as_ptr(), kind.as_ptr());
    // SAFETY: all strings end with a zero byte and live until the call returns.
    check(unsafe { libc::mount(what, at, kind, flags, options.as_ptr().cast()) })
}

pub(crate) fn unmount(at: &Path) -> io::Result<()> {
    // SAFETY: the path ends with a zero byte.
    check(unsafe { libc::umount2(text(at).as_ptr(), libc::MNT_DETACH) })
}

/// Shuts an ext4 file system down: from now on every call fails with EIO. With `flags` 2 what was
/// not synced is lost, as when power fails.
pub(crate) fn shut_down(at: &Path, flags: u32) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    const EXT4_IOC_SHUTDOWN: c_ulong = 0x8004_587d;
    let dir = std::fs::File::open(at)?;
    // SAFETY: the call reads a number of 32 bits.
    check(unsafe { libc::ioctl(dir.as_raw_fd(), EXT4_IOC_SHUTDOWN, &raw const flags) })
}

/// Syncs the directories of two names.
pub(crate) fn sync_dirs(one: &Path, other: &Path) -> io::Result<()> {
    for dir in [one, other].into_iter().filter_map(Path::parent) {
        std::fs::File::open(dir)?.sync_all()?;
    }
    Ok(())
}

/// Returns the process number of the copy to its parent, and 0 to the copy.
pub(crate) fn fork() -> c_int {
    // SAFETY: the copy calls the store, as programs do that fork without thinking.
    let process = unsafe { libc::fork() };
    assert!(process >= 0, "{}", io::Error::last_os_error());
    process
}

pub(crate) fn wait_for(process: c_int) {
    // SAFETY: no status is asked for.
    unsafe { libc::waitpid(process, std::ptr::null_mut(), 0) };
}

pub(crate) fn end_now() -> ! {
    // SAFETY: it does not return.
    unsafe { libc::_exit(0) }
}

/// Runs this program anew in this process, with the same arguments.
pub(crate) fn exec_self() -> ! {
    use std::os::unix::process::CommandExt;
    let program = std::env::current_exe().unwrap();
    panic!("{}", std::process::Command::new(program).args(std::env::args_os().skip(1)).exec())
}

/// Sends a signal to a process, if it still lives.
pub(crate) fn signal(process: u32, signal: c_int) {
    // SAFETY: no memory is passed.
    unsafe { libc::kill(process as c_int, signal) };
}

/// Waits until this process has another parent.
pub(crate) fn wait_for_the_end_of(parent: u32) {
    while std::os::unix::process::parent_id() == parent {
        std::thread::yield_now();
    }
}

fn limit(resource: libc::__rlimit_resource_t, soft: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure lives until the call returns.
    check(unsafe { libc::getrlimit(resource, &raw mut limit) }).unwrap();
    limit.rlim_cur = soft.min(limit.rlim_max);
    // SAFETY: as above.
    check(unsafe { libc::setrlimit(resource, &raw const limit) }).unwrap();
}

/// Lets this process open `more` files more than it has now.
pub(crate) fn limit_files(more: u64) {
    let open = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().unwrap().parse::<u64>().ok());
    // The list itself is open, too; its number is free again.
    limit(libc::RLIMIT_NOFILE, open.max().unwrap() + more);
}

/// Lets files of this process grow to `bytes` and no further.
pub(crate) fn limit_size(bytes: u64) {
    // SAFETY: an ignored signal runs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    limit(libc::RLIMIT_FSIZE, bytes);
}

extern "C" fn nothing(_: c_int) {}

/// Interrupts the calls of all threads of this process, all the time.
pub(crate) fn signal_all_threads_for_ever() {
    // SAFETY: the handler does nothing. Without SA_RESTART, calls return EINTR.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        check(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut())).unwrap();
    }
    std::thread::spawn(|| {
        // SAFETY: no memory is passed.
        let own = unsafe { libc::gettid() };
        loop {
            let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
            for thread in threads {
                let thread: c_int = thread.file_name().to_str().unwrap().parse().unwrap();
                if thread != own {
                    // SAFETY: as above. A thread that has ended is an error, which does no harm.
                    unsafe {
                        libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGUSR1)
                    };
                }
            }
            std::thread::sleep(Duration::from_micros(300));
        }
    });
}

/// Returns the numbers of the system calls that do `what`.
#[cfg(target_arch = "x86_64")]
fn calls(what: &str) -> &'static [libc::c_long] {
    match what {
        "fallocate" => &[libc::SYS_fallocate],
        "link" => &[libc::SYS_link, libc::SYS_linkat],
        "sync" => &[libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_msync, libc::SYS_syncfs],
        "write" => &[libc::SYS_write, libc::SYS_pwrite64, libc::SYS_writev, libc::SYS_pwritev],
        "read" => &[libc::SYS_pread64, libc::SYS_preadv],
        "rename" => &[libc::SYS_rename, libc::SYS_renameat, libc::SYS_renameat2],
        "unlink" => &[libc::SYS_unlink, libc::SYS_unlinkat],
        "truncate" => &[libc::SYS_ftruncate, libc::SYS_truncate],
        "flock" => &[libc::SYS_flock],
        "list" => &[libc::SYS_getdents64],
        "copy" => &[libc::SYS_copy_file_range, libc::SYS_sendfile],
        _ => &[],
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn calls(_: &str) -> &'static [libc::c_long] {
    &[]
}

/// Makes the system calls that do `what` fail with `code` from now on, in all threads, except for
/// standard output and error. Returns false if they are not known here.
pub(crate) fn deny(what: &str, code: &str) -> bool {
    let numbers = calls(what);
    let code = match code {
        "EIO" => libc::EIO,
        "EPERM" => libc::EPERM,
        "ENOSYS" => libc::ENOSYS,
        "ENOLCK" => libc::ENOLCK,
        "ENOSPC" => libc::ENOSPC,
        _ => libc::EOPNOTSUPP,
    };
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let give = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code: u16, jt: u8, jf: u8, k: u32| libc::sock_filter { code, jt, jf, k };
    let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let greater = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
    // The number of the call comes first in what a filter sees, its first argument at byte 16.
    let mut steps = vec![step(load, 0, 0, 0)];
    let count = numbers.len() as u8;
    for (at, number) in numbers.iter().enumerate() {
        steps.push(step(
            equal,
            count - 1 - at as u8,
            u8::from(at + 1 == numbers.len()) * 4,
            *number as u32,
        ));
    }
    steps.push(step(load, 0, 0, 16));
    // Descriptors 1 and 2 are for answers.
    steps.push(step(greater, 1, 0, 2));
    steps.push(step(give, 0, 0, libc::SECCOMP_RET_ALLOW));
    steps.push(step(give, 0, 0, libc::SECCOMP_RET_ERRNO | code as u32));
    steps.push(step(give, 0, 0, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the program lives until the call returns, and the kernel checks it.
    let result = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let every_thread = libc::SECCOMP_FILTER_FLAG_TSYNC;
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            every_thread,
            &raw const program,
        )
    };
    !numbers.is_empty() && result == 0
}
