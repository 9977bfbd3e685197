//! The demo on few rows: it ends well, and says what it found.

use crate::patience;
use crate::support::{Folder, texts, thawdb};

#[test]
fn the_demo_ends_well() {
    let folder = Folder::new("demo");
    let picture = format!("{}/demo.svg", folder.text());
    let arguments = ["demo", "--rows", "30000", "--memory", "128MB", "--data", folder.text(), "--svg", &picture];
    let output = patience::output(&mut thawdb(&arguments));
    let (said, complained) = texts(&output);
    assert!(output.status.success(), "{said}\n{complained}");
    for wanted in
        ["loaded 30,000 rows", "every answer is right", "all are there", "CHECKDB found 0 allocation errors and 0 consistency errors"]
    {
        assert!(said.contains(wanted), "{wanted} is missing from {said}");
    }
    for figure in ["demo: load, rate", "demo: peak memory", "demo: reopen after SIGKILL", "demo: DBCC CHECKDB"] {
        assert!(said.contains(figure), "{figure} is missing from {said}");
    }
    for build in ["\noffline ", "\nonline ", "\nresumable ", "\nresumable, log of "] {
        assert!(said.contains(build), "{build:?} is missing from {said}");
    }
    assert_eq!(std::fs::read_to_string(picture).unwrap().matches("<polyline").count(), 4);
}
