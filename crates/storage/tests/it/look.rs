//! Looks at single rows: they say what a view taken in the same moment would say, or that they do not know.

use crate::world::World;
use thawdb_storage::{Look, Row, TxnId};

#[test]
fn a_look_sees_what_is_committed_and_what_is_its_own() {
    let mut world = World::new("look");
    let tree = world.tree();
    {
        let database = world.database.clone();
        let handle = database.handle(tree).unwrap();
        let look = |own: Option<TxnId>| database.look(&handle, own, b"k", <[u8]>::to_vec).unwrap();
        let seen = |value: &[u8]| Look::Seen(value.to_vec());
        assert_eq!(look(None), Look::Absent);
        let mut txn = database.begin();
        txn.insert(tree, b"k", Row::inline(b"one")).unwrap();
        assert_eq!((look(None), look(txn.id())), (Look::Unsure, seen(b"one")));
        txn.commit().unwrap();
        assert_eq!(look(None), seen(b"one"));
        let mut txn = database.begin();
        txn.update(tree, b"k", Row::inline(b"two")).unwrap();
        assert_eq!((look(None), look(txn.id())), (Look::Unsure, seen(b"two")));
        txn.rollback().unwrap();
        assert_eq!(look(None), seen(b"one"));
        // One that goes on keeps the lowest active number low: what others commit is seen all the same.
        let mut long = database.begin();
        long.insert(tree, b"other", Row::inline(b"x")).unwrap();
        let mut txn = database.begin();
        txn.update(tree, b"k", Row::inline(b"three")).unwrap();
        txn.commit().unwrap();
        assert_eq!(look(None), seen(b"three"));
        long.rollback().unwrap();
        let mut txn = database.begin();
        txn.delete(tree, b"k").unwrap();
        assert_eq!((look(None), look(txn.id())), (Look::Unsure, Look::Absent));
        txn.commit().unwrap();
        assert_eq!(look(None), Look::Absent);
        let mut txn = database.begin();
        txn.insert(tree, b"k", Row { inline: b"in", large: &[b"apart"] }).unwrap();
        txn.commit().unwrap();
        assert_eq!(look(None), Look::Unsure, "large parts are a view's business");
    }
    world.reopen();
    let handle = world.database.handle(tree).unwrap();
    let absent = world.database.look(&handle, None, b"other", <[u8]>::len).unwrap();
    assert_eq!(absent, Look::Absent);
}
