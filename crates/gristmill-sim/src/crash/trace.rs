//! A command -> the same command, each of its system calls seen before and after, and failed where the one who sees it wants so.
//! Knows no meaning of a call. The one place here that is not safe: the system traces processes by numbers and addresses.
#![allow(unsafe_code, reason = "ptrace and waitpid have no safe face")]

use std::collections::HashMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

/// A system call of a thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) thread: i32,
    pub(super) number: i64,
    pub(super) args: [u64; 6],
}

/// Who sees the calls.
pub(super) trait Watcher {
    /// Before a call. With an error number it fails so, and nothing is done.
    fn enters(&mut self, call: &Call) -> Option<i32>;

    /// After a call that was not failed.
    fn leaves(&mut self, call: &Call, result: i64);
}

/// Stops of calls have this bit, unlike others.
const OF_A_CALL: i32 = libc::SIGTRAP | 0x80;

/// Runs a command to its end; the code that it ends with, or 128 and the signal that ended it.
///
/// Errors: where the command does not start, or the system lets no process be traced.
pub(super) fn watch(command: &mut Command, watcher: &mut dyn Watcher) -> io::Result<i32> {
    // SAFETY: between fork and exec only one system call is made, which touches no memory.
    unsafe {
        command.pre_exec(|| ask(libc::PTRACE_TRACEME, 0, 0, 0));
    }
    let child = command.spawn()?.id().cast_signed();
    let (_, status) = wait(child)?;
    if !libc::WIFSTOPPED(status) {
        return Err(io::Error::other("the command did not stop at its start"));
    }
    let started = libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK;
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL | started;
    // SAFETY: the child is ours, and stopped; no address is given.
    unsafe { ask(libc::PTRACE_SETOPTIONS, child, 0, options as usize)? };
    go_on(child, 0);
    let mut calls: HashMap<i32, (Call, Option<i32>)> = HashMap::new();
    loop {
        let (thread, status) = wait(-1)?;
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            calls.remove(&thread);
            if thread != child {
                continue;
            }
            return Ok(match libc::WIFEXITED(status) {
                true => libc::WEXITSTATUS(status),
                false => 128 + libc::WTERMSIG(status),
            });
        }
        match libc::WSTOPSIG(status) {
            OF_A_CALL => {
                stopped(thread, &mut calls, watcher)?;
                go_on(thread, 0);
            }
            // A new thread, or a new program.
            libc::SIGTRAP => go_on(thread, 0),
            libc::SIGSTOP if thread != child => go_on(thread, 0),
            signal => go_on(thread, signal),
        }
    }
}

/// A thread before or after a call.
fn stopped(thread: i32, calls: &mut HashMap<i32, (Call, Option<i32>)>, watcher: &mut dyn Watcher) -> io::Result<()> {
    // SAFETY: it is plain numbers, for which zeros are a value.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: the system writes at most `size` bytes there.
    unsafe { ask(libc::PTRACE_GET_SYSCALL_INFO, thread, size, ptr::from_mut(&mut info) as usize)? };
    if info.op == libc::PTRACE_SYSCALL_INFO_ENTRY {
        // SAFETY: the system says that it filled this variant.
        let (number, args) = unsafe { (info.u.entry.nr.cast_signed(), info.u.entry.args) };
        let call = Call { thread, number, args };
        let fails = watcher.enters(&call);
        if fails.is_some() {
            answer(thread, None)?;
        }
        calls.insert(thread, (call, fails));
    } else if let Some((call, fails)) = calls.remove(&thread) {
        match fails {
            Some(error) => answer(thread, Some(error))?,
            // SAFETY: the system says that it filled this variant.
            None => watcher.leaves(&call, unsafe { info.u.exit.sval }),
        }
    }
    Ok(())
}

/// Takes a call's number away, so that nothing is done; or, after it, says with which error it failed.
#[cfg(target_arch = "x86_64")]
fn answer(thread: i32, error: Option<i32>) -> io::Result<()> {
    // SAFETY: they are plain numbers, for which zeros are a value.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: the thread is stopped; the system writes the registers there.
    unsafe { ask(libc::PTRACE_GETREGS, thread, 0, ptr::from_mut(&mut registers) as usize)? };
    match error {
        None => registers.orig_rax = u64::MAX,
        Some(error) => registers.rax = i64::from(-error).cast_unsigned(),
    }
    // SAFETY: the thread is stopped; these are its registers but for the call.
    unsafe { ask(libc::PTRACE_SETREGS, thread, 0, ptr::from_ref(&registers) as usize) }
}

#[cfg(not(target_arch = "x86_64"))]
fn answer(_: i32, _: Option<i32>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Waits for a thread of the child of this thread.
fn wait(whom: i32) -> io::Result<(i32, i32)> {
    let mut status = 0;
    loop {
        // SAFETY: the system writes one number there.
        let thread = unsafe { libc::waitpid(whom, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
        match thread {
            0.. => return Ok((thread, status)),
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            _ => return Err(io::Error::last_os_error()),
        }
    }
}

/// Lets a thread run to its next call. One that was killed meanwhile is reported by `wait`.
fn go_on(thread: i32, signal: i32) {
    // SAFETY: the thread is stopped, or gone, which the system says; no address is given.
    _ = unsafe { ask(libc::PTRACE_SYSCALL, thread, 0, signal as usize) };
}

/// Asks the system about a thread, or to do something with it.
///
/// # Safety
///
/// Where `request` takes addresses, `address` and `data` are those of what it takes.
unsafe fn ask(request: libc::c_uint, thread: i32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: the caller says so; both numbers are as wide as the addresses that the system expects.
    match unsafe { libc::ptrace(request, thread, address, data) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
