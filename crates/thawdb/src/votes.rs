//! The Votes workload: the rows that the demo, the benchmarks and the full-size tests all use.
//!
//! The shape of `Votes` in Stack Overflow's 2013 dump. Every row is a pure function of its Id and the row count N,
//! so any range can be made in any order and gives the same bytes:
//!
//! ```text
//! draw(i, k) = mix(2013 + (4 i + k) * 0x9E3779B97F4A7C15)      splitmix64 in counter mode
//! sq(u)      = (u * u) >> 32                                   the square of a fraction of 2^32
//! ```
//!
//! All arithmetic is on unsigned 64-bit integers, wrapping. Invariants (each has a test below):
//! V1 the checksum of a given N never changes; V2 rows are in Id order and dates never fall.
//!
//! What it does not do: format rows other than as CSV, or write files; callers stream [`Votes::csv_row`].

/// Rows at full size.
pub const ROWS_FULL: u64 = 52_928_720;

/// The table, as T-SQL makes it.
pub const CREATE_TABLE: &str = "CREATE TABLE dbo.Votes (\
    Id int IDENTITY PRIMARY KEY, PostId int NOT NULL, UserId int NULL, \
    BountyAmount int NULL, VoteTypeId int NOT NULL, CreationDate datetime NOT NULL)";

/// Cumulative frequency of VoteTypeId 1..=16, in ten-thousandths.
const VOTE_TYPE_CUMULATIVE: [u64; 16] = [900, 8200, 8840, 8850, 9235, 9295, 9300, 9315, 9330, 9710, 9740, 9760, 9765, 9770, 9830, 10_000];
/// Amounts a bounty has, equally often.
const BOUNTY_AMOUNTS: [u32; 10] = [50, 50, 50, 50, 100, 100, 100, 150, 200, 500];
/// Users who may cast a named vote.
const USER_COUNT: u64 = 2_465_713;
/// Days from 1900-01-01 to 2008-07-31, the day of the first vote.
const FIRST_DAY: u32 = 39_658;
/// Days that the votes span.
const DAY_COUNT: u64 = 1980;

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vote {
    /// Position, from 1.
    pub id: u32,
    /// The post voted on.
    pub post_id: u32,
    /// The voter, where the vote names one.
    pub user_id: Option<u32>,
    /// Points offered, where the vote is a bounty.
    pub bounty_amount: Option<u32>,
    /// Kind of vote, 1..=16.
    pub vote_type_id: u32,
    /// Days since 2008-07-31.
    pub day: u32,
}

/// The table of `rows` rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Votes {
    rows: u64,
}

impl Votes {
    /// A table of `rows` rows, 1..=4,294,967,295.
    pub fn new(rows: u64) -> Self {
        assert!(rows >= 1 && u32::try_from(rows).is_ok(), "ids are 32-bit and the table is not empty");
        Self { rows }
    }

    /// Number of rows.
    pub fn rows(self) -> u64 {
        self.rows
    }

    /// Row `id`, 1..=rows.
    pub fn row(self, id: u64) -> Vote {
        assert!((1..=self.rows).contains(&id), "row {id} of {}", self.rows);
        let n = self.rows;
        let j = id - 1;
        let posts_max = (n * 39 / 100).max(1);
        let posts_now = 1 + j * posts_max / n;
        let (r0, r1, r2) = (draw(id, 0), draw(id, 1), draw(id, 2));
        let vote_type_id = vote_type(r1);
        Vote {
            id: narrow(id),
            post_id: narrow(post(r0 >> 32, r1 & 1023, posts_now, posts_max)),
            user_id: matches!(vote_type_id, 5 | 8).then(|| narrow(1 + ((square(r2 >> 32) * USER_COUNT) >> 32))),
            bounty_amount: matches!(vote_type_id, 8 | 9).then(|| BOUNTY_AMOUNTS[(((r2 & 0xFFFF_FFFF) * 10) >> 32) as usize]),
            vote_type_id,
            day: narrow((j * DAY_COUNT * DAY_COUNT / n).isqrt()),
        }
    }

    /// Appends row `id` as a line of CSV: `Id,PostId,UserId,BountyAmount,VoteTypeId,2008-07-31T00:00:00`, NULL empty.
    pub fn csv_row(self, id: u64, dates: &DateTexts, out: &mut Vec<u8>) {
        let row = self.row(id);
        let optional = |value: Option<u32>, out: &mut Vec<u8>| {
            if let Some(value) = value {
                push_number(value, out);
            }
            out.push(b',');
        };
        for value in [row.id, row.post_id] {
            push_number(value, out);
            out.push(b',');
        }
        optional(row.user_id, out);
        optional(row.bounty_amount, out);
        push_number(row.vote_type_id, out);
        out.push(b',');
        out.extend_from_slice(&dates.0[row.day as usize]);
        out.push(b'\n');
    }

    /// Number of rows with each VoteTypeId 1..=16, the answer of a GROUP BY.
    pub fn count_by_type(self) -> [u64; 16] {
        let mut counts = [0; 16];
        for id in 1..=self.rows {
            counts[vote_type(draw(id, 1)) as usize - 1] += 1;
        }
        counts
    }
}

impl Vote {
    /// CreationDate as days since 1900-01-01, the day part of a datetime.
    pub fn datetime_day(&self) -> u32 {
        FIRST_DAY + self.day
    }
}

/// The 1,980 dates as text, made once because a row only looks its own up.
pub struct DateTexts(Vec<[u8; 19]>);

impl DateTexts {
    /// All dates.
    pub fn new() -> Self {
        let text = |day: u64| {
            let (year, month, day) = civil(i64::from(FIRST_DAY) + i64::try_from(day).expect("1,980 days"));
            let mut bytes = *b"0000-00-00T00:00:00";
            bytes[..10].copy_from_slice(format!("{year:04}-{month:02}-{day:02}").as_bytes());
            bytes
        };
        Self((0..DAY_COUNT).map(text).collect())
    }
}

impl Default for DateTexts {
    fn default() -> Self {
        Self::new()
    }
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).expect("every field is 32-bit")
}

fn draw(i: u64, k: u64) -> u64 {
    let mut z = 2013u64.wrapping_add((4 * i + k).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn square(u: u64) -> u64 {
    (u * u) >> 32
}

/// 60 % of votes go to recent posts at a quartic recency; the others to popular posts, spread by a permutation.
fn post(u: u64, selector: u64, posts_now: u64, posts_max: u64) -> u64 {
    if selector < 614 {
        return posts_now - ((square(square(u)) * posts_now) >> 32);
    }
    let fraction = if selector < 963 { square(u) } else { (square(u) * u) >> 32 };
    let rank = (fraction * posts_max) >> 32;
    let post = (rank * 2_654_435_761 + 11_227_901) % posts_max;
    1 + if post < posts_now { post } else { post % posts_now }
}

fn vote_type(r1: u64) -> u32 {
    let t = ((r1 >> 32) * 10_000) >> 32;
    let index = VOTE_TYPE_CUMULATIVE.iter().position(|&limit| t < limit).expect("t is below 10,000");
    u32::try_from(index + 1).expect("16 types")
}

fn push_number(value: u32, out: &mut Vec<u8>) {
    let mut digits = [0; 10];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).expect("one digit");
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Year, month, day of a day counted from 1900-01-01 (Hinnant, *chrono-compatible low-level date algorithms*).
fn civil(days_since_1900: i64) -> (i64, i64, i64) {
    let z = days_since_1900 + 693_901;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum(rows: u64) -> u64 {
        let votes = Votes::new(rows);
        let mut hash = 0u64;
        for id in 1..=rows {
            let v = votes.row(id);
            for field in [v.id, v.post_id, v.user_id.unwrap_or(0), v.bounty_amount.unwrap_or(0), v.vote_type_id, v.day] {
                hash = (hash ^ u64::from(field)).wrapping_mul(0x100_0000_01B3);
            }
        }
        hash
    }

    #[test]
    fn thousand_rows_have_the_published_checksum() {
        assert_eq!(checksum(1000), 0x1788_0d69_fde4_3ec3);
        let posts: std::collections::BTreeSet<u32> = (1..=1000).map(|id| Votes::new(1000).row(id).post_id).collect();
        assert_eq!(posts.len(), 327);
    }

    #[test]
    fn csv_is_the_rows_and_dates_are_civil() {
        let dates = DateTexts::new();
        assert_eq!(&dates.0[0], b"2008-07-31T00:00:00");
        assert_eq!(&dates.0[1979], b"2013-12-31T00:00:00");
        let votes = Votes::new(1000);
        let mut text = Vec::new();
        for id in 1..=1000 {
            votes.csv_row(id, &dates, &mut text);
        }
        let text = String::from_utf8(text).expect("ASCII");
        for (line, id) in text.lines().zip(1..) {
            let fields: Vec<&str> = line.split(',').collect();
            let row = votes.row(id);
            assert_eq!(fields[0], row.id.to_string());
            assert_eq!(fields[2].parse().ok(), row.user_id);
            assert_eq!(fields[5].as_bytes(), dates.0[row.day as usize]);
        }
        assert_eq!(text.lines().count(), 1000);
    }

    #[test]
    fn dates_never_fall_and_types_add_up() {
        let votes = Votes::new(5000);
        assert!((2..=5000).all(|id| votes.row(id).day >= votes.row(id - 1).day));
        assert_eq!(votes.count_by_type().iter().sum::<u64>(), 5000);
    }
}
