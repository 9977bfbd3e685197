//! The workspace keeps its own rules. A failure lists what to change; `cargo xtask tidy` and `check-floors` say the same.

#[test]
fn the_workspace_is_tidy_and_its_floors_hold() {
    let findings = xtask::check_all(&xtask::workspace_root()).expect("the workspace can be read");
    let shown: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "{} findings:\n{}", shown.len(), shown.join("\n"));
}

#[test]
fn the_list_has_shrunk() {
    let listed = std::fs::read_to_string(xtask::workspace_root().join(xtask::exceptions::FILE)).unwrap_or_default();
    let count = listed.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).count();
    assert_eq!(count, xtask::exceptions::EXCEPTIONS_MAX, "lower EXCEPTIONS_MAX with the list");
}
