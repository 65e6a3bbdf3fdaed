use std::collections::HashMap;
use std::fs;
fn main() {
    let data = fs::read_to_string("input.txt").unwrap();
    let mut counts: HashMap<char, usize> = HashMap::new();
    for c in data.chars() { *counts.entry(c).or_insert(0) += 1; }
    println!("Found {} unique chars", counts.len());
}
