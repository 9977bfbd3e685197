//! A worker at a connection: answers a request, then waits for the next one for a while.
//!
//! How it waits: first by looking again and again for [`SPIN_US`], if its looking has paid lately, no other worker looks and
//! cores are idle ([`Crowd::leaves_cores_idle`]); a core that has gone idle takes longer to wake than that. Then in poll(2).
//! A worker leaves when nothing has come for [`STAY`], when others wait for a worker ([`Crowd`]), or when the server stops.
//!
//! Failure: a connection that breaks or speaks nonsense is closed by the task, which is told.

use crate::packet::{Message, Packet, PacketType};
use crate::server::line::Line;
use crate::server::request::{self, Outcome};
use crate::server::sink::Peer;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use thawdb_engine::Session;

/// Longest wait at a connection whose client is silent: a pool of workers is for those who speak.
const STAY: Duration = Duration::from_millis(100);
/// After so long it looks whether others wait for a worker.
const LOOK: Duration = Duration::from_millis(5);
/// A little more than waking an idle core takes on the machines measured (40 to 50 us).
const SPIN_US: u64 = 60;
/// Spins that have paid count up to this; each one in vain takes [`SPIN_LOSS`] away.
const CREDIT_MAX: i32 = 16;
const SPIN_LOSS: i32 = 4;
/// Waits without a spin before one is tried again, beyond the credit lost.
const CREDIT_MIN: i32 = -64;

/// How many want workers, and how many there can be.
pub(crate) struct Crowd {
    pub(crate) worker_count_max: usize,
    /// Workers at connections.
    pub(crate) working: AtomicUsize,
    /// Requests that have no worker yet.
    pub(crate) queued: AtomicUsize,
    /// Whether a worker spins: one at a time, for a second would only take the first one's client's core.
    spinning: AtomicBool,
    /// Cores of the machine.
    cores: usize,
    pub(crate) stopping: AtomicBool,
}

impl Crowd {
    pub(crate) fn new(worker_count_max: usize) -> Self {
        let (working, queued) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { worker_count_max, working, queued, spinning: AtomicBool::new(false), cores, stopping: AtomicBool::new(false) }
    }

    /// Whether each connection with a worker has a core for it and one for its client: where threads wait for cores a spin takes
    /// one from them.
    fn leaves_cores_idle(&self) -> bool {
        self.working.load(Ordering::Relaxed) * 2 <= self.cores
    }

    /// Whether a worker without a request has to go. Relaxed: a late answer is an answer.
    fn must_leave(&self) -> bool {
        self.queued.load(Ordering::Relaxed) > 0 || self.stopping.load(Ordering::Relaxed)
    }

    /// Whether a worker may wait at a silent connection at all.
    fn has_room(&self) -> bool {
        self.working.load(Ordering::Relaxed) * 2 <= self.worker_count_max
    }
}

/// Why a worker gave a connection back.
pub(crate) enum Leaving {
    /// The connection goes on.
    Ready,
    /// A packet came that begins no request of the worker's kind.
    Packet(Packet),
    /// The connection must be closed.
    Close,
}

/// What a worker needs besides the session.
pub(crate) struct Post<'a> {
    pub(crate) line: &'a Line,
    pub(crate) peer: &'a Peer,
    pub(crate) crowd: &'a Crowd,
}

/// What waiting for a request led to.
enum Next {
    Message(Message),
    Leave(Leaving),
}

/// Answers `message`, which [`Line::begin`] was called for, and what follows it.
pub(crate) fn run(session: &mut Session, mut message: Message, post: &Post<'_>) -> Leaving {
    let mut credit = 0;
    loop {
        let outcome = request::run(session, &message, post.peer);
        let stays = post.line.finish();
        if let Outcome::Close = outcome {
            return Leaving::Close;
        }
        if !stays || post.crowd.must_leave() {
            return Leaving::Ready;
        }
        match post.next(&mut credit) {
            Next::Message(next) => message = next,
            Next::Leave(why) => return why,
        }
        post.line.begin();
    }
}

impl Post<'_> {
    /// What is already read, framed.
    fn framed(&self) -> Option<Next> {
        let mut framer = self.line.framer.lock();
        loop {
            let packet = match framer.next_packet() {
                Ok(Some(packet)) => packet,
                Ok(None) => return None,
                Err(_) => return Some(Next::Leave(Leaving::Close)),
            };
            if matches!(packet.packet_type, PacketType::Attention | PacketType::BulkLoad) {
                return Some(Next::Leave(Leaving::Packet(packet)));
            }
            match framer.add(packet) {
                Ok(Some(message)) => return Some(Next::Message(message)),
                Ok(None) => {}
                Err(_) => return Some(Next::Leave(Leaving::Close)),
            }
        }
    }

    /// Whether something was read.
    fn read(&self) -> Result<bool, Next> {
        let read = self.peer.transport.read_now(&mut self.line.framer.lock());
        read.map_err(|_| Next::Leave(Leaving::Close))
    }

    fn next(&self, credit: &mut i32) -> Next {
        self.wait(credit).unwrap_or_else(|next| next)
    }

    /// Waits for the next request; it comes back as the error of the waiting.
    fn wait(&self, credit: &mut i32) -> Result<Next, Next> {
        let mut waited = Duration::ZERO;
        loop {
            if let Some(next) = self.framed() {
                return Ok(next);
            }
            if waited.is_zero() && self.spin(credit)? {
                continue;
            }
            let patience = if waited.is_zero() { LOOK } else { STAY - waited };
            let ready = self.peer.transport.wait_readable(patience).map_err(|_| Next::Leave(Leaving::Close))?;
            if ready && self.read()? {
                continue;
            }
            waited += patience;
            if waited >= STAY || self.crowd.must_leave() || !self.crowd.has_room() {
                return Ok(Next::Leave(Leaving::Ready));
            }
        }
    }

    /// Looks for a while; whether something came.
    fn spin(&self, credit: &mut i32) -> Result<bool, Next> {
        if *credit < 0 {
            *credit += 1;
            return Ok(false);
        }
        // Relaxed: the flag guards nothing but a habit.
        if !self.crowd.leaves_cores_idle() || self.crowd.spinning.swap(true, Ordering::Relaxed) {
            return Ok(false);
        }
        let begun = Instant::now();
        let mut came = Ok(false);
        // Without giving way: where another thread wants the core, Linux (6.18) makes who yields wait a whole slice for its next
        // turn. Beside other work on the machine one connection then had 33 to 100 inserts a second, and 5,700 like this.
        while matches!(came, Ok(false)) && begun.elapsed() < Duration::from_micros(SPIN_US) {
            std::hint::spin_loop();
            came = self.read();
        }
        self.crowd.spinning.store(false, Ordering::Relaxed);
        *credit = match came {
            Ok(true) => (*credit + 1).min(CREDIT_MAX),
            _ if *credit > SPIN_LOSS => *credit - SPIN_LOSS,
            _ => CREDIT_MIN,
        };
        came
    }
}
