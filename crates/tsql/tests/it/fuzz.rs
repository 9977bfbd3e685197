//! No text panics or loops: mutated statements, from a fixed seed.

use thawdb_tsql::{ParseOptions, definition, lexer, parse_batch, parse_expr, parse_parameter_list, split_script};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

fn run(text: &str) {
    for quoted_identifier in [true, false] {
        let options = ParseOptions { quoted_identifier };
        let batch = parse_batch(text, &options);
        for error in &batch.errors {
            let _ = error.text();
            assert!(error.span.start as usize <= text.len() && error.span.end as usize <= text.len(), "{text:?}: {error:?}");
            assert!(error.line >= 1);
        }
        for statement in &batch.statements {
            assert!(!statement.span.slice(text).is_empty(), "{text:?}: {statement:?}");
        }
        if let Ok(expr) = parse_expr(text, &options) {
            let _ = definition(&expr);
        }
        let _ = parse_parameter_list(text, &options);
    }
    let _ = split_script(text);
}

/// The tokens of all the corpus, to be mixed anew.
fn vocabulary(corpus: &[&str]) -> Vec<String> {
    let mut words = Vec::new();
    for text in corpus {
        let (tokens, _) = lexer::lex(text, &ParseOptions::default());
        words.extend(tokens.iter().map(|t| text[t.start as usize..t.end as usize].to_owned()));
    }
    words
}

#[test]
fn mutated_statements_do_not_panic() {
    let corpus: Vec<&str> = crate::trees::CASES.iter().map(|case| case.0).chain(crate::real::BATCHES.iter().copied()).collect();
    let words = vocabulary(&corpus);
    let mut random = Random(20_261_121);
    for _ in 0..6_000 {
        let base = corpus[random.below(corpus.len())];
        let (tokens, _) = lexer::lex(base, &ParseOptions::default());
        let mut parts: Vec<String> = tokens.iter().map(|t| base[t.start as usize..t.end as usize].to_owned()).collect();
        for _ in 0..=random.below(3) {
            let at = random.below(parts.len());
            match random.below(5) {
                0 => {
                    parts.remove(at);
                }
                1 => parts.insert(at, words[random.below(words.len())].clone()),
                2 => parts[at] = words[random.below(words.len())].clone(),
                3 => parts.truncate(at),
                _ => {
                    let other = random.below(parts.len());
                    parts.swap(at, other);
                }
            }
            if parts.is_empty() {
                parts.push(String::new());
            }
        }
        run(&parts.join(" "));
    }
}

#[test]
fn random_characters_do_not_panic() {
    let alphabet: Vec<char> = "'\"[](){}@#$.,;:+-*/%&|^~!=<>?\\0123456789exNnab \n\ré語£\u{0}\u{feff}\u{1f600}".chars().collect();
    let mut random = Random(7);
    for _ in 0..10_000 {
        let text: String = (0..random.below(24)).map(|_| alphabet[random.below(alphabet.len())]).collect();
        run(&text);
    }
}

#[test]
fn every_prefix_of_a_statement_ends_in_a_tree_or_an_error() {
    for (text, _) in crate::trees::CASES {
        for (at, _) in text.char_indices() {
            run(&text[..at]);
        }
    }
}
