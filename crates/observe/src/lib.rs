//! What the engine sees of itself: named locks, waits, counters and events.
//!
//! Every crate above takes its locks, counts its work and reports its waits through this one, so that
//! a DBA can read them from T-SQL and a test can replace the scheduler beneath them.
//!
//! | module | what it gives | where a DBA sees it |
//! |---|---|---|
//! | [`sync`] | locks by class and rank | `sys.dm_os_latch_stats`, `sys.dm_os_spinlock_stats` |
//! | [`wait`] | what a session waits for | `sys.dm_os_wait_stats`, `sys.dm_os_waiting_tasks`, `sys.dm_exec_requests` |
//! | [`counter`] | sums of work | `sys.dm_os_performance_counters` |
//! | [`event`] | typed events, off until asked for | extended event sessions |
//! | [`cancel`] | the wish that a statement ends | `sys.dm_exec_requests.command`, attention, KILL |
//! | [`clock`] | nanoseconds for all of these | - |
//!
//! Cost when nobody looks: a counter or a free lock adds one store to a line of the thread's own; an event that
//! no sink wants is one relaxed load. Statistics belong to the process, not to an instance: two embedded instances
//! in one process share them, as they share the processor.
//!
//! It does not do I/O, know SQL or pages, or format for people: views read the numbers and name the columns.

pub mod cancel;
pub mod clock;
pub mod counter;
pub mod event;
#[cfg(any(test, feature = "explore"))]
pub mod explore;
pub mod seeded;
pub mod shard;
pub mod sync;
pub mod wait;
