//! hierarchyid: a path of a tree as bytes whose order is the tree's, depth first.
//!
//! ```text
//! /1/3.2/        levels between slashes; a level is one or more labels with points between them
//! 01 01 1 | 01 xx 0 ...     a label: prefix that tells its range, bits of its place in it, and a last bit: 1 ends the level
//! ```
//! A label that is not its level's last is stored one higher with a last bit of 0, so that `/1.1/` lies between `/1/` and `/2/`.
//! Bits are filled up with zeros to whole bytes, which is no label. The root is the empty string of bytes.
//!
//! Invariants: [`encode`] and [`decode`] are each other's inverse on what [`parse`] takes; bytes compare as paths do. Nothing blocks.
//! Failure: 6522's texts 24001 (no path), 24002 (no bytes of one), 24006, 24007 (children that are none or not in order).
//! Source: [MS-SSCLRT] 2.1.1; O'Neil et al., ORDPATHs: Insert-Friendly XML Node Labels (SIGMOD 2004), from which the codes come.

use crate::error::{SqlError, message};

/// Bytes of a value at most.
pub const BYTES_MAX: usize = 892;

/// A path: levels of labels. The root has none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Path(Vec<Vec<i64>>);

/// A range of labels: the least and greatest, and the form of its code. `x` is a bit of the label less the least one; the last
/// bit is not in it.
struct Pattern {
    least: i64,
    greatest: i64,
    form: &'static str,
}

const fn pattern(least: i64, greatest: i64, form: &'static str) -> Pattern {
    Pattern { least, greatest, form }
}

/// In order of the labels, which is the order of the codes.
const PATTERNS: &[Pattern] = &[
    pattern(-281_479_271_682_120, -4_294_971_465, "000100xxxxxxxxxxxxxx0xxxxxxxxxxxxxxxxxxxxx0xxxxxx0xxx0x1xxx"),
    pattern(-4_294_971_464, -4_169, "000101xxxxxxxxxxxxxxxxxxx0xxxxxx0xxx0x1xxx"),
    pattern(-4_168, -73, "000110xxxxx0xxx0x1xxx"),
    pattern(-72, -9, "0010xx0x1xxx"),
    pattern(-8, -1, "00111xxx"),
    pattern(0, 3, "01xx"),
    pattern(4, 7, "100xx"),
    pattern(8, 15, "101xxx"),
    pattern(16, 79, "110xx0x1xxx"),
    pattern(80, 1_103, "1110xxx0xxx0x1xxx"),
    pattern(1_104, 5_199, "11110xxxxx0xxx0x1xxx"),
    pattern(5_200, 4_294_972_495, "111110xxxxxxxxxxxxxxxxxxx0xxxxxx0xxx0x1xxx"),
    pattern(4_294_972_496, 281_479_271_683_151, "111111xxxxxxxxxxxxxx0xxxxxxxxxxxxxxxxxxxxx0xxxxxx0xxx0x1xxx"),
];

/// A failure as the assembly of the type tells it.
fn refused(number: i32, text: &str) -> SqlError {
    message(6522, &[&"hierarchyid", &format!("Microsoft.SqlServer.Types.HierarchyIdException: {number}: {text}")])
}

/// The path that a text says.
///
/// # Errors
/// 6522 with 24001 for a text that says none.
pub fn parse(text: &str) -> Result<Path, SqlError> {
    let wrong = || {
        refused(
            24001,
            &format!(
                "SqlHierarchyId.Parse failed because the input string '{text}' is not a valid string representation of a SqlHierarchyId node."
            ),
        )
    };
    let inside = text.strip_prefix('/').ok_or_else(wrong)?;
    let Some(inside) = inside.strip_suffix('/') else {
        return if inside.is_empty() { Ok(Path::default()) } else { Err(wrong()) };
    };
    let label = |part: &str| {
        let digits = part.strip_prefix('-').unwrap_or(part);
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let value = part.parse::<i64>().ok().filter(|_| plain)?;
        is_label(&value).then_some(value)
    };
    let level = |part: &str| part.split('.').map(label).collect::<Option<Vec<_>>>();
    inside.split('/').map(level).collect::<Option<Vec<_>>>().map(Path).ok_or_else(wrong)
}

/// The bytes of a path.
pub fn encode(path: &Path) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    for level in &path.0 {
        for (at, label) in level.iter().enumerate() {
            let ends = at + 1 == level.len();
            let stored = if ends { *label } else { *label + 1 };
            let pattern = PATTERNS.iter().find(|p| stored <= p.greatest).expect("the parser takes no greater label");
            let mut left = pattern.form.bytes().filter(|b| *b == b'x').count();
            let offset = stored - pattern.least;
            for form in pattern.form.bytes() {
                bits.push(match form {
                    b'x' => {
                        left -= 1;
                        offset >> left & 1 == 1
                    }
                    other => other == b'1',
                });
            }
            bits.push(ends);
        }
    }
    bits.chunks(8).map(|byte| byte.iter().enumerate().fold(0, |sum, (at, bit)| sum | u8::from(*bit) << (7 - at))).collect()
}

/// The path that bytes say.
///
/// # Errors
/// 6522 with 24002 for bytes that are none.
pub fn decode(bytes: &[u8]) -> Result<Path, SqlError> {
    let wrong =
        || refused(24002, "SqlHierarchyId.Read failed because the input binary is not a valid representation of a SqlHierarchyId node.");
    let bit = |at: usize| bytes.get(at / 8).map(|byte| byte >> (7 - at % 8) & 1 == 1);
    let (mut at, mut levels, mut level) = (0, Vec::new(), Vec::new());
    while at < bytes.len() * 8 {
        if level.is_empty() && (at..bytes.len() * 8).all(|at| bit(at) == Some(false)) {
            break;
        }
        let fits =
            |p: &&Pattern| p.form.bytes().enumerate().all(|(i, form)| bit(at + i).is_some_and(|bit| form == b'x' || bit == (form == b'1')));
        let pattern = PATTERNS.iter().find(fits).ok_or_else(wrong)?;
        let taken =
            |offset: i64, (i, form): (usize, u8)| if form == b'x' { offset << 1 | i64::from(bit(at + i) == Some(true)) } else { offset };
        let stored = pattern.least + pattern.form.bytes().enumerate().fold(0, taken);
        at += pattern.form.len();
        let ends = bit(at).ok_or_else(wrong)?;
        at += 1;
        let label = if ends { stored } else { stored - 1 };
        level.push(Some(label).filter(is_label).ok_or_else(wrong)?);
        if ends {
            levels.push(std::mem::take(&mut level));
        }
    }
    if level.is_empty() { Ok(Path(levels)) } else { Err(wrong()) }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("/")?;
        for level in &self.0 {
            let labels: Vec<String> = level.iter().map(i64::to_string).collect();
            write!(f, "{}/", labels.join("."))?;
        }
        Ok(())
    }
}

impl Path {
    /// Levels below the root.
    pub fn level(&self) -> usize {
        self.0.len()
    }

    /// The node `levels` above; `None` above the root.
    pub fn ancestor(&self, levels: usize) -> Option<Self> {
        Some(Self(self.0[..self.0.len().checked_sub(levels)?].to_vec()))
    }

    /// Whether it lies below `other`, or is it.
    pub fn is_descendant_of(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The path with `new` in the place of its beginning `old`; `None` if it does not begin so.
    pub fn reparented(&self, old: &Self, new: &Self) -> Option<Self> {
        let rest = self.0.strip_prefix(old.0.as_slice())?;
        Some(Self([new.0.as_slice(), rest].concat()))
    }

    /// A child between two others, either of which may be missing.
    ///
    /// # Errors
    /// 6522 with 24006 or 24007 for what is no child, 24008 for two that are not in order, 24009 at the ends of all labels.
    pub fn descendant(&self, first: Option<&Self>, second: Option<&Self>) -> Result<Self, SqlError> {
        let is_child = |child: &Self| child.level() == self.level() + 1 && child.is_descendant_of(self);
        let wrong = |number, which| {
            refused(
                number,
                &format!(
                    "SqlHierarchyId.GetDescendant failed because '{which}' must be a child of 'this'. '{which}' was '{}' and 'this' was '{self}'.",
                    if which == "child1" { first } else { second }.map_or_else(String::new, ToString::to_string)
                ),
            )
        };
        if first.is_some_and(|child| !is_child(child)) {
            return Err(wrong(24006, "child1"));
        }
        if second.is_some_and(|child| !is_child(child)) {
            return Err(wrong(24007, "child2"));
        }
        let last = |child: &Self| child.0.last().cloned().unwrap_or_default();
        let labels = match (first.map(last), second.map(last)) {
            (None, None) => vec![1],
            (Some(first), None) => after(&first),
            (None, Some(second)) => before(&second),
            (Some(a), Some(b)) if a < b => between(&a, &b),
            (Some(_), Some(_)) => {
                let text = "SqlHierarchyId.GetDescendant failed because 'child1' must be less than 'child2'.";
                return Err(refused(24008, text));
            }
        };
        if !labels.iter().all(is_label) {
            // Bytes from elsewhere may hold the least or greatest label there is.
            return Err(refused(24009, "SqlHierarchyId.GetDescendant failed because there is no label left beside its children."));
        }
        let mut path = self.clone();
        path.0.push(labels);
        Ok(path)
    }
}

/// Whether a label can be stored, also one that its level goes on behind.
fn is_label(value: &i64) -> bool {
    (PATTERNS[0].least..PATTERNS[PATTERNS.len() - 1].greatest).contains(value)
}

/// The level behind one: its first label and one more.
fn after(level: &[i64]) -> Vec<i64> {
    vec![level[0] + 1]
}

fn before(level: &[i64]) -> Vec<i64> {
    vec![level[0] - 1]
}

/// A level between two, of as few labels as will do.
fn between(low: &[i64], high: &[i64]) -> Vec<i64> {
    let same = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let mut level = low[..same].to_vec();
    match (low.get(same), high.get(same)) {
        // The lower one is a beginning of the higher one: `1` and `1.5`.
        (None, Some(high_label)) => level.push(high_label - 1),
        (Some(low_label), Some(high_label)) if high_label - low_label > 1 => level.push(low_label + 1),
        (Some(low_label), _) => {
            level.push(*low_label);
            match low.get(same + 1) {
                Some(next) => level.push(next + 1),
                None => level.push(1),
            }
        }
        (None, None) => unreachable!("the levels differ"),
    }
    level
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_specification() {
        let check = |text: &str, bytes: &[u8]| {
            let path = parse(text).expect("a path");
            assert_eq!(encode(&path), bytes, "{text}");
            assert_eq!(decode(bytes).expect("its bytes"), path, "{text}");
            assert_eq!(path.to_string(), text);
        };
        check("/", &[]);
        check("/1/", &[0x58]);
        check("/2/", &[0x68]);
        check("/1/1/", &[0x5A, 0xC0]);
        check("/1.1/", &[0x62, 0xC0]);
        check("/4/", &[0x84]);
        for text in ["/0/", "/-1/", "/15/16/79/80/", "/1103/1104/5199/5200/", "/-8/-9/-72/-73/", "/4294972496.-4169/", "/1.2.3/4/"] {
            let path = parse(text).expect("a path");
            assert_eq!(decode(&encode(&path)).expect("its bytes"), path, "{text}");
        }
    }

    #[test]
    fn bytes_compare_as_paths_do() {
        let labels = [-5000, -100, -9, -1, 0, 1, 3, 4, 8, 16, 80, 1104, 6000];
        let mut paths = vec![Path::default()];
        for a in labels {
            paths.push(Path(vec![vec![a]]));
            paths.push(Path(vec![vec![a, 1]]));
            paths.extend(labels.map(|b| Path(vec![vec![a], vec![b]])));
        }
        for a in &paths {
            for b in &paths {
                // A dotted label comes behind the node without it and all below that node.
                let key = |p: &Path| {
                    p.0.iter()
                        .flat_map(|l| l.iter().map(|n| 2 * n + i64::from(l.len() > 1)).take(1).chain(l[1..].iter().copied()))
                        .collect::<Vec<_>>()
                };
                assert_eq!(encode(a).cmp(&encode(b)), key(a).cmp(&key(b)), "{a} and {b}");
            }
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["", "1", "/1", "1/", "//", "/a/", "/1./", "/+1/", "/ 1/"] {
            assert_eq!(parse(text).expect_err(text).number, 6522, "{text}");
        }
        assert!(decode(&[0xFF]).is_err() && decode(&[0x40]).is_err());
    }

    #[test]
    fn no_child_lies_beyond_the_last_label() {
        let path = |text: &str| parse(text).expect("a path");
        let ends = [path("/281479271683150/"), path("/-281479271682120/")];
        assert_eq!(Path::default().descendant(Some(&ends[0]), None).expect_err("the last").number, 6522);
        assert_eq!(Path::default().descendant(None, Some(&ends[1])).expect_err("the first").number, 6522);
        let beyond = encode(&Path(vec![vec![281_479_271_683_151]]));
        assert_eq!(decode(&beyond).expect_err("a label that nothing writes").number, 6522);
    }

    #[test]
    fn children_go_between_children() {
        let path = |text: &str| parse(text).expect("a path");
        let check = |parent: &str, first: Option<&str>, second: Option<&str>, expected: &str| {
            let (first, second) = (first.map(path), second.map(path));
            let child = path(parent).descendant(first.as_ref(), second.as_ref()).expect("a child");
            assert_eq!(child.to_string(), expected);
        };
        check("/", None, None, "/1/");
        check("/1/", Some("/1/1/"), None, "/1/2/");
        check("/1/", None, Some("/1/1/"), "/1/0/");
        check("/1/", Some("/1/1/"), Some("/1/3/"), "/1/2/");
        check("/1/", Some("/1/1/"), Some("/1/2/"), "/1/1.1/");
        check("/1/", Some("/1/1.1/"), Some("/1/2/"), "/1/1.2/");
        check("/1/", Some("/1/1/"), Some("/1/1.1/"), "/1/1.0/");
        assert!(path("/1/").descendant(Some(&path("/2/1/")), None).is_err());
        assert!(path("/1/").descendant(Some(&path("/1/2/")), Some(&path("/1/1/"))).is_err());
        assert_eq!(path("/1/2/3/").reparented(&path("/1/2/"), &path("/9/")).expect("below").to_string(), "/9/3/");
        assert_eq!(path("/1/2/3/").ancestor(2).expect("above").to_string(), "/1/");
        assert!(path("/1/2/").is_descendant_of(&path("/1/")) && path("/1/").is_descendant_of(&Path::default()));
    }
}
