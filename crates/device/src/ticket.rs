//! Transfers that go on while their owner does something else.
//!
//! ```text
//! start_read(requests) -> Ticket        wait() -> the same requests, filled, and the result
//!        |  buffers moved in               ^
//!        +--> a worker performs the batch -+
//! ```
//!
//! Buffers are owned by the device from start to completion, so nothing can be freed or written under a running
//! transfer, and a ticket may be dropped at any time: the transfer ends by itself and frees the buffers.

use crate::buffer::{AlignedBuf, IoBuffer};
use crate::file::{DeviceError, ReadRequest};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use thawdb_observe::sync::{Condvar, LockClass, Mutex};

static TICKET: LockClass = LockClass::new("DEVICE_TICKET", 5);

/// One read or write with a buffer that goes along.
pub struct OwnedRequest {
    /// Byte offset in the file.
    pub offset: u64,
    /// Where the bytes go or come from.
    pub buffer: Box<dyn IoBuffer>,
}

impl OwnedRequest {
    /// A request of a plain buffer.
    pub fn new(offset: u64, buffer: AlignedBuf) -> Self {
        Self { offset, buffer: Box::new(buffer) }
    }

    pub(crate) fn borrow_for_read(&mut self) -> ReadRequest<'_> {
        ReadRequest { offset: self.offset, buffer: self.buffer.bytes_mut() }
    }

    /// The plain buffer it was made with.
    ///
    /// # Panics
    /// If it was made with a buffer of another type, which only its maker can mistake.
    pub fn into_aligned(self) -> AlignedBuf {
        let buffer: Box<dyn Any> = self.buffer;
        *buffer.downcast::<AlignedBuf>().expect("the request was made with an aligned buffer")
    }
}

impl fmt::Debug for OwnedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnedRequest({} bytes at {:#x})", self.buffer.bytes().len(), self.offset)
    }
}

type Outcome = (Vec<OwnedRequest>, Result<(), DeviceError>);

/// A batch under way.
#[must_use = "the result and the buffers come from waiting"]
pub struct Ticket(Arc<Shared>);

/// The side that completes a ticket.
pub(crate) struct Completer(Arc<Shared>);

struct Shared {
    outcome: Mutex<Option<Outcome>>,
    completed: Condvar,
}

impl Ticket {
    /// A ticket of a batch that is done.
    pub fn done(requests: Vec<OwnedRequest>, result: Result<(), DeviceError>) -> Self {
        Self(Arc::new(Shared { outcome: Mutex::new(&TICKET, Some((requests, result))), completed: Condvar::new() }))
    }

    /// A ticket of a batch that a worker will complete.
    pub(crate) fn pending() -> (Self, Completer) {
        let shared = Arc::new(Shared { outcome: Mutex::new(&TICKET, None), completed: Condvar::new() });
        (Self(Arc::clone(&shared)), Completer(shared))
    }

    /// Whether [`Self::wait`] would return at once.
    pub fn is_done(&self) -> bool {
        self.0.outcome.lock().is_some()
    }

    /// Waits for all requests of the batch; gives them back with the first error if any.
    pub fn wait(self) -> Outcome {
        let mut outcome = self.0.outcome.lock();
        loop {
            if let Some(done) = outcome.take() {
                return done;
            }
            self.0.completed.wait(&mut outcome);
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("done", &self.is_done()).finish()
    }
}

impl Completer {
    pub(crate) fn complete(self, requests: Vec<OwnedRequest>, result: Result<(), DeviceError>) {
        *self.0.outcome.lock() = Some((requests, result));
        self.0.completed.notify_all();
    }
}
