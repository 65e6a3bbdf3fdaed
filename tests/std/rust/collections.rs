// Vec, VecDeque, LinkedList, HashMap, HashSet, BTreeMap, BTreeSet, BinaryHeap. What a hash map
// holds is printed sorted: its order is random by design.
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};

fn vectors() {
    let mut v: Vec<i32> = (0..10).map(|i| (i * 7) % 10).collect();
    v.sort_unstable();
    v.dedup();
    v.retain(|x| x % 3 != 0);
    v.insert(1, 100);
    v.swap(0, 2);
    println!("vec {:?} len {} contains {}", v, v.len(), v.contains(&100));
    println!("drain {:?} left {:?}", v.drain(1..3).collect::<Vec<_>>(), v);
    v.extend_from_slice(&[5, 5, 1]);
    v.sort_by(|a, b| b.cmp(a));
    println!("sorted {:?} search {:?}", v, v.binary_search_by(|x| 5.cmp(x)).is_ok());
    println!("chunks {:?} windows {:?}", v.chunks(2).map(|c| c.len()).collect::<Vec<_>>(),
             v.windows(2).map(|w| w[0] - w[1]).collect::<Vec<_>>());
    let grid = vec![vec![1u8; 3]; 2];
    println!("grid {:?} concat {:?}", grid, grid.concat());
    let (left, right) = [1, 2, 3, 4, 5].split_at(2);
    println!("split {:?} {:?} rotate {:?}", left, right, { let mut a = [1, 2, 3, 4]; a.rotate_left(1); a });
    // Grows through many reallocations.
    let mut big = Vec::new();
    for i in 0u64..50_000 {
        big.push(i * i);
    }
    println!("big {} {}", big.len(), big.iter().sum::<u64>());
    let boxed: Box<[u64]> = big.into_boxed_slice();
    println!("boxed {}", boxed[49_999]);
}

fn queues() {
    let mut d: VecDeque<_> = (1..=5).collect();
    d.push_front(0);
    d.rotate_left(2);
    d.pop_back();
    println!("deque {:?} front {:?} back {:?}", d, d.front(), d.back());
    d.make_contiguous().sort();
    println!("sorted {:?} range {:?}", d, d.range(1..3).collect::<Vec<_>>());
    let mut list: LinkedList<&str> = ["b", "c"].into_iter().collect();
    list.push_front("a");
    let mut tail = list.split_off(1);
    tail.push_back("d");
    list.append(&mut tail);
    println!("list {:?} len {}", list, list.len());
    let mut heap: BinaryHeap<_> = [3, 1, 4, 1, 5, 9, 2, 6].into_iter().collect();
    heap.push(7);
    println!("heap {:?} then {:?}", heap.pop(), heap.into_sorted_vec());
    let mut least = BinaryHeap::new();
    for word in ["pear", "fig", "apple"] {
        least.push(Reverse((word.len(), word)));
    }
    println!("least {:?}", least.pop().map(|Reverse(pair)| pair));
}

fn hashes() {
    let mut map: HashMap<String, Vec<u32>> = HashMap::new();
    for i in 0..1000u32 {
        map.entry(format!("key{}", i % 37)).or_default().push(i);
    }
    map.retain(|key, _| !key.ends_with('3'));
    let mut keys: Vec<_> = map.iter().map(|(k, v)| (k.as_str(), v.len(), v[0])).collect();
    keys.sort();
    println!("map {} {:?}", map.len(), &keys[..4]);
    *map.get_mut("key1").unwrap() = vec![];
    println!("get {:?} {:?}", map.get("key1"), map.get("none"));
    println!("remove {:?} {:?}", map.remove("key2").map(|v| v.len()), map.remove("key2"));
    let a: HashSet<i32> = (0..20).step_by(2).collect();
    let b: HashSet<i32> = (0..20).step_by(3).collect();
    let sorted = |set: Vec<&i32>| { let mut s = set; s.sort(); format!("{:?}", s) };
    println!("and {}", sorted(a.intersection(&b).collect()));
    println!("xor {}", sorted(a.symmetric_difference(&b).collect()));
    println!("subset {} {}", a.is_subset(&b), [0, 6].iter().copied().collect::<HashSet<_>>().is_subset(&a));
}

fn trees() {
    let mut map = BTreeMap::new();
    for i in (0..2000).rev() {
        map.insert(i * 31 % 2003, i);
    }
    println!("btree {} first {:?} last {:?}", map.len(), map.iter().next(), map.iter().next_back());
    println!("range {:?}", map.range(100..103).collect::<Vec<_>>());
    for key in (0..2003).filter(|k| k % 5 != 0) {
        map.remove(&key);
    }
    println!("left {} sum {}", map.len(), map.values().map(|v| *v as i64).sum::<i64>());
    let high = map.split_off(&1990);
    println!("split {:?} and {}", high, map.len());
    let set: BTreeSet<char> = "the quick brown fox".chars().filter(|c| c.is_alphabetic()).collect();
    println!("set {}", set.iter().collect::<String>());
    println!("after m {:?}", set.range('m'..).take(3).collect::<Vec<_>>());
}

fn main() {
    vectors();
    queues();
    hashes();
    trees();
}
