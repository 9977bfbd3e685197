//! What can be ordered to go wrong, and where.

/// A kind of call, or of request for reads and writes: each request of a batch counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Opening a file.
    Open,
    /// Making a file, which is an open too but changes the disk.
    Create,
    /// One read request.
    Read,
    /// One write request.
    Write,
    /// A sync.
    Sync,
    /// A change of length.
    SetLen,
    /// A renaming.
    Rename,
    /// A removal.
    Remove,
}

impl Operation {
    /// The name errors carry, which is that of the real device.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Open | Self::Create => "open",
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::SetLen => "resize",
            Self::Rename => "rename",
            Self::Remove => "remove",
        }
    }

    /// Whether it changes what is on the disk, or what of it is durable.
    pub const fn is_mutation(self) -> bool {
        !matches!(self, Self::Open | Self::Read)
    }
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails with kind `Io`. A failed write may have reached any of its sectors; a failed sync leaves the file refusing.
    IoError,
    /// It fails with kind `Full`.
    Full,
    /// One bit, chosen by the seed, is wrong: in the answer of a read, on the disk after a write.
    FlipBit,
    /// A write lands elsewhere in the file, a read answers with the bytes of elsewhere.
    Misdirect,
    /// It is acknowledged and not done: a lost write, a sync that lies.
    Lose,
    /// It takes this much longer, in nanoseconds on the simulated clock.
    Delay(u64),
}

impl Fault {
    /// Whether the fault can happen to the operation.
    pub const fn fits(self, operation: Operation) -> bool {
        match self {
            Self::IoError | Self::Delay(_) => true,
            Self::Full => matches!(operation, Operation::Write | Operation::SetLen | Operation::Create),
            Self::FlipBit | Self::Misdirect => matches!(operation, Operation::Read | Operation::Write),
            Self::Lose => matches!(operation, Operation::Write | Operation::Sync),
        }
    }
}

/// An order for faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultRule {
    /// What it happens to.
    pub operation: Operation,
    /// Only to files whose path contains this, if given.
    pub path_contains: Option<String>,
    /// Matching operations that go well before.
    pub skip: u64,
    /// Matching operations it happens to after those.
    pub times: u64,
    /// What happens.
    pub fault: Fault,
}

impl FaultRule {
    /// The fault happens to the `number`-th such operation (from 1), once.
    pub fn nth(operation: Operation, number: u64, fault: Fault) -> Self {
        Self { operation, path_contains: None, skip: number.saturating_sub(1), times: 1, fault }
    }

    /// Restricts the rule to files whose path contains `text`.
    pub fn on(mut self, text: &str) -> Self {
        self.path_contains = Some(text.to_owned());
        self
    }

    pub(super) fn matches(&mut self, operation: Operation, path: &str) -> bool {
        if operation != self.operation || self.path_contains.as_ref().is_some_and(|text| !path.contains(text.as_str())) {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        if self.times == 0 {
            return false;
        }
        self.times -= 1;
        true
    }
}

/// When to crash: at the `number`-th operation of a kind, counted from 1. By the seed, the operation has its effect or
/// not; it is never acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPoint {
    /// At an operation that changes the disk.
    Mutation(u64),
    /// At an operation of this kind.
    Operation(Operation, u64),
}

/// How many operations there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperationCounts {
    /// Files opened, not made.
    pub opens: u64,
    /// Files made.
    pub creates: u64,
    /// Read requests.
    pub reads: u64,
    /// Write requests.
    pub writes: u64,
    /// Syncs.
    pub syncs: u64,
    /// Changes of length.
    pub set_lens: u64,
    /// Renamings.
    pub renames: u64,
    /// Removals.
    pub removes: u64,
}

impl OperationCounts {
    /// Operations that change the disk or what of it is durable: the numbers a sweep of crashes goes through.
    pub const fn mutations(&self) -> u64 {
        self.creates + self.writes + self.syncs + self.set_lens + self.renames + self.removes
    }

    /// Operations of one kind.
    pub const fn of(&self, operation: Operation) -> u64 {
        match operation {
            Operation::Open => self.opens,
            Operation::Create => self.creates,
            Operation::Read => self.reads,
            Operation::Write => self.writes,
            Operation::Sync => self.syncs,
            Operation::SetLen => self.set_lens,
            Operation::Rename => self.renames,
            Operation::Remove => self.removes,
        }
    }

    pub(super) fn count(&mut self, operation: Operation) {
        let cell = match operation {
            Operation::Open => &mut self.opens,
            Operation::Create => &mut self.creates,
            Operation::Read => &mut self.reads,
            Operation::Write => &mut self.writes,
            Operation::Sync => &mut self.syncs,
            Operation::SetLen => &mut self.set_lens,
            Operation::Rename => &mut self.renames,
            Operation::Remove => &mut self.removes,
        };
        *cell += 1;
    }
}
