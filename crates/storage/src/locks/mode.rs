//! Lock modes, their compatibility and their conversions, in SQL Server's names.
//!
//! A mode is a range part (none, S, I, X) and a set of claims (S, U, X on the thing itself; IS, IU, IX on what lies
//! below). Two modes go together when every claim of one goes with every claim of the other and their range parts do;
//! holding both is holding the union. So the two big tables of the manuals are derived here from two small ones.
//!
//! Invariants: 1. `compatible` is symmetric. 2. `combined` is commutative, idempotent and never weaker than either
//! (all three tested over all pairs). No locks, no failure.

/// Modes as `sys.dm_tran_locks.request_mode` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are SQL Server's and say all there is")]
pub enum LockMode {
    SchS,
    SchM,
    S,
    U,
    X,
    IS,
    IU,
    IX,
    SIU,
    SIX,
    UIX,
    BU,
    RangeSS,
    RangeSU,
    RangeIN,
    RangeIS,
    RangeIU,
    RangeIX,
    RangeXS,
    RangeXU,
    RangeXX,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Range {
    None,
    S,
    I,
    X,
}

const S: u8 = 1;
const U: u8 = 2;
const X: u8 = 4;
const IS: u8 = 8;
const IU: u8 = 16;
const IX: u8 = 32;

/// For each claim, the claims it goes with.
const GOES_WITH: [(u8, u8); 6] =
    [(S, S | U | IS | IU), (U, S | IS), (X, 0), (IS, S | U | IS | IU | IX), (IU, S | IS | IU | IX), (IX, IS | IU | IX)];

impl LockMode {
    /// Every mode.
    pub const ALL: [Self; 21] = [
        Self::SchS,
        Self::SchM,
        Self::S,
        Self::U,
        Self::X,
        Self::IS,
        Self::IU,
        Self::IX,
        Self::SIU,
        Self::SIX,
        Self::UIX,
        Self::BU,
        Self::RangeSS,
        Self::RangeSU,
        Self::RangeIN,
        Self::RangeIS,
        Self::RangeIU,
        Self::RangeIX,
        Self::RangeXS,
        Self::RangeXU,
        Self::RangeXX,
    ];

    /// The name in `request_mode`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SchS => "Sch-S",
            Self::SchM => "Sch-M",
            Self::S => "S",
            Self::U => "U",
            Self::X => "X",
            Self::IS => "IS",
            Self::IU => "IU",
            Self::IX => "IX",
            Self::SIU => "SIU",
            Self::SIX => "SIX",
            Self::UIX => "UIX",
            Self::BU => "BU",
            Self::RangeSS => "RangeS-S",
            Self::RangeSU => "RangeS-U",
            Self::RangeIN => "RangeI-N",
            Self::RangeIS => "RangeI-S",
            Self::RangeIU => "RangeI-U",
            Self::RangeIX => "RangeI-X",
            Self::RangeXS => "RangeX-S",
            Self::RangeXU => "RangeX-U",
            Self::RangeXX => "RangeX-X",
        }
    }

    /// Whether it keeps others from putting keys into the gap below.
    pub fn holds_gap(self) -> bool {
        matches!(self.parts().0, Range::S | Range::X)
    }

    fn parts(self) -> (Range, u8) {
        match self {
            Self::SchS | Self::SchM | Self::BU => (Range::None, 0),
            Self::S => (Range::None, S),
            Self::U => (Range::None, U),
            Self::X => (Range::None, X),
            Self::IS => (Range::None, IS),
            Self::IU => (Range::None, IU),
            Self::IX => (Range::None, IX),
            Self::SIU => (Range::None, S | IU),
            Self::SIX => (Range::None, S | IX),
            Self::UIX => (Range::None, U | IX),
            Self::RangeSS => (Range::S, S),
            Self::RangeSU => (Range::S, U),
            Self::RangeIN => (Range::I, 0),
            Self::RangeIS => (Range::I, S),
            Self::RangeIU => (Range::I, U),
            Self::RangeIX => (Range::I, X),
            Self::RangeXS => (Range::X, S),
            Self::RangeXU => (Range::X, U),
            Self::RangeXX => (Range::X, X),
        }
    }

    fn from_parts(range: Range, claims: u8) -> Self {
        let key = if claims & X != 0 {
            X
        } else if claims & U != 0 {
            U
        } else {
            claims & S
        };
        match (range, key) {
            (Range::None, X) => Self::X,
            (Range::None, U) if claims & IX != 0 => Self::UIX,
            (Range::None, U) => Self::U,
            (Range::None, S) if claims & IX != 0 => Self::SIX,
            (Range::None, S) if claims & IU != 0 => Self::SIU,
            (Range::None, S) => Self::S,
            (Range::None, _) if claims & IX != 0 => Self::IX,
            (Range::None, _) if claims & IU != 0 => Self::IU,
            (Range::None, _) => Self::IS,
            (Range::S, X) | (Range::X, X) => Self::RangeXX,
            (Range::S, U) => Self::RangeSU,
            (Range::S, _) => Self::RangeSS,
            (Range::I, X) => Self::RangeIX,
            (Range::I, U) => Self::RangeIU,
            (Range::I, S) => Self::RangeIS,
            (Range::I, _) => Self::RangeIN,
            (Range::X, U) => Self::RangeXU,
            (Range::X, _) => Self::RangeXS,
        }
    }

    /// Whether two owners may hold these modes on one resource at a time.
    pub fn compatible(self, other: Self) -> bool {
        match (self, other) {
            (Self::SchM, _) | (_, Self::SchM) => return false,
            (Self::SchS, _) | (_, Self::SchS) => return true,
            (Self::BU, _) | (_, Self::BU) => return self == other,
            _ => {}
        }
        let ((my_range, my_claims), (its_range, its_claims)) = (self.parts(), other.parts());
        let ranges_go = match (my_range, its_range) {
            (Range::None, _) | (_, Range::None) | (Range::S, Range::S) | (Range::I, Range::I) => true,
            (Range::X | Range::S | Range::I, _) => false,
        };
        ranges_go && GOES_WITH.iter().all(|(claim, with)| my_claims & claim == 0 || its_claims & !with == 0)
    }

    /// The weakest mode that grants what both grant.
    pub fn combined(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => return a,
            (Self::SchM, _) | (_, Self::SchM) => return Self::SchM,
            (Self::SchS, mode) | (mode, Self::SchS) => return mode,
            (Self::BU, _) | (_, Self::BU) => return Self::X,
            _ => {}
        }
        let ((my_range, my_claims), (its_range, its_claims)) = (self.parts(), other.parts());
        let range = match (my_range, its_range) {
            (a, b) if a == b => a,
            (Range::None, range) | (range, Range::None) => range,
            _ => Range::X,
        };
        Self::from_parts(range, my_claims | its_claims)
    }
}

#[cfg(test)]
mod tests {
    use super::LockMode;
    use super::LockMode::{IS, IX, RangeIN, RangeSS, RangeSU, RangeXS, RangeXX, S, SIX, U, X};

    #[test]
    fn compatibility_is_the_manuals() {
        // Rows and columns: IS S U IX SIX X (Transaction Locking and Row Versioning Guide, "Lock compatibility").
        let modes = [IS, S, U, IX, SIX, X];
        let table = ["yyyyyn", "yyynnn", "yynnnn", "ynnynn", "ynnnnn", "nnnnnn"];
        // Key-range: S U X RangeS-S RangeS-U RangeI-N RangeX-X ("Key-range lock compatibility").
        let range_modes = [S, U, X, RangeSS, RangeSU, RangeIN, RangeXX];
        let range_table = ["yynyyyn", "ynnynyn", "nnnnnyn", "yynyynn", "ynnynnn", "yyynnyn", "nnnnnnn"];
        let check = |modes: &[LockMode], table: &[&str]| {
            for (a, row) in modes.iter().zip(table) {
                for (b, cell) in modes.iter().zip(row.chars()) {
                    assert_eq!(a.compatible(*b), cell == 'y', "{} with {}", a.name(), b.name());
                }
            }
        };
        check(&modes, &table);
        check(&range_modes, &range_table);
    }

    #[test]
    fn combining_is_a_join() {
        // Modes of things with parts below them, and modes of keys: the two never meet on one resource.
        let whole: Vec<LockMode> = LockMode::ALL.into_iter().filter(|mode| *mode < RangeSS).collect();
        let keys: Vec<LockMode> = [S, U, X].into_iter().chain(LockMode::ALL.into_iter().filter(|mode| *mode >= RangeSS)).collect();
        for family in [whole, keys] {
            for (&a, &b) in family.iter().flat_map(|a| family.iter().map(move |b| (a, b))) {
                let both = a.combined(b);
                assert_eq!(both, b.combined(a));
                assert_eq!(a.compatible(b), b.compatible(a));
                assert!(a != b || both == a);
                for &other in &family {
                    let allowed = !both.compatible(other) || (a.compatible(other) && b.compatible(other));
                    assert!(allowed, "{both:?} is weaker than {a:?} and {b:?}");
                }
            }
        }
        assert_eq!(S.combined(IX), SIX);
        assert_eq!(U.combined(S), U);
        assert_eq!(RangeIN.combined(RangeSS), RangeXS);
    }
}
