//! Which state is this repository's.

use proctor_workspace::{Repository, worktree_key};

use crate::world::{World, write};

#[test]
fn the_first_to_claim_the_id_gives_it() {
    let world = World::new();
    let repository = world.repository();
    assert_eq!(repository.proctor_id().unwrap(), None);

    assert_eq!(repository.claim_proctor_id("first").unwrap(), "first");
    assert_eq!(repository.claim_proctor_id("second").unwrap(), "first");
    repository.replace_proctor_id("third").unwrap();

    assert_eq!(repository.proctor_id().unwrap().as_deref(), Some("third"));
    assert_eq!(world.short_status(), "");
}

#[test]
fn of_many_who_claim_at_once_one_wins_for_all() {
    let world = World::new();
    let claim = |number: usize| {
        let repository = world.repository();
        repository.claim_proctor_id(&format!("id {number}")).unwrap()
    };

    let ids: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || claim(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });

    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(world.repository().proctor_id().unwrap().as_deref(), Some(ids[0].as_str()));
}

#[test]
fn an_empty_id_file_is_no_id() {
    let world = World::new();
    let repository = world.repository();
    write(&world.top.join(".git/proctor-id"), "");

    assert_eq!(repository.proctor_id().unwrap(), None);
    assert_eq!(repository.claim_proctor_id("new").unwrap(), "new");
}

#[test]
fn all_work_trees_share_the_id_and_have_keys_of_their_own() {
    let world = World::new();
    let linked = world.outside("linked");
    world.git(&["worktree", "add", "--quiet", linked.to_str().unwrap()]);
    let main = world.repository();
    let other = Repository::discover(&linked, &world.environment()).unwrap();

    main.claim_proctor_id("one").unwrap();

    assert_eq!(other.proctor_id().unwrap().as_deref(), Some("one"));
    assert_ne!(worktree_key(&main.work_tree), worktree_key(&other.work_tree));
}
