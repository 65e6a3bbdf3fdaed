// Iterators: adapters, consumers, our own, and closures that capture.
use std::collections::BTreeMap;
use std::iter::{self, FromIterator, Peekable};

struct Collatz(u64);

impl Iterator for Collatz {
    type Item = u64;
    fn next(&mut self) -> Option<u64> {
        if self.0 == 0 {
            return None;
        }
        let now = self.0;
        self.0 = match now {
            1 => 0,
            n if n % 2 == 0 => n / 2,
            n => 3 * n + 1,
        };
        Some(now)
    }
}

struct Runs<I: Iterator>(Peekable<I>);

impl<I: Iterator> Iterator for Runs<I> where I::Item: PartialEq {
    type Item = (I::Item, usize);
    fn next(&mut self) -> Option<Self::Item> {
        let first = self.0.next()?;
        let mut count = 1;
        while self.0.next_if(|item| *item == first).is_some() {
            count += 1;
        }
        Some((first, count))
    }
}

struct Histogram(BTreeMap<char, usize>);

impl FromIterator<char> for Histogram {
    fn from_iter<T: IntoIterator<Item = char>>(items: T) -> Self {
        let mut map = BTreeMap::new();
        items.into_iter().for_each(|c| *map.entry(c).or_insert(0) += 1);
        Histogram(map)
    }
}

fn compose<A, B, C>(f: impl Fn(A) -> B, g: impl Fn(B) -> C) -> impl Fn(A) -> C {
    move |x| g(f(x))
}

fn main() {
    println!("{:?} {}", Collatz(6).collect::<Vec<_>>(), Collatz(97).count());
    println!("{:?}", (1..10u64).max_by_key(|n| Collatz(*n).count()));
    println!("{}", Runs("aaabccdddd".chars().peekable()).map(|(c, n)| format!("{}{}", c, n)).collect::<String>());
    println!("{:?}", "mississippi".chars().collect::<Histogram>().0);
    let words = ["zip", "map", "fold", "scan", "flat"];
    println!("{:?}", words.iter().zip(1..).map(|(w, n)| format!("{}{}", w, n)).collect::<Vec<_>>().join("-"));
    println!("{:?}", words.iter().enumerate().filter_map(|(i, w)| (i % 2 == 0).then(|| w.len())).collect::<Vec<_>>());
    println!("{:?}", (1..=5).scan(1, |product, x| { *product *= x; Some(*product) }).collect::<Vec<_>>());
    println!("{:?}", words.iter().flat_map(|w| w.chars().take(2)).collect::<String>());
    println!("{:?}", (0..20).skip_while(|x| x * x < 50).step_by(3).take_while(|x| *x < 18).collect::<Vec<_>>());
    println!("{:?}", [1, 2, 3].iter().cycle().skip(1).take(7).collect::<Vec<_>>());
    println!("{:?}", (0..10).partition::<Vec<_>, _>(|x| x % 3 == 0));
    println!("{:?}", words.iter().rev().skip(1).rposition(|w| *w == "map"));
    println!("{:?} {:?}", (1..=4).fold(String::new(), |s, x| format!("({}{})", s, x)), (1..=20u64).product::<u64>());
    println!("{:?} {:?}", words.iter().min_by(|a, b| a.len().cmp(&b.len()).then(b.cmp(a))), (0..0).max());
    println!("{:?} {:?}", (1..5).map(|x| if x < 9 { Ok(x) } else { Err("no") }).collect::<Result<Vec<_>, _>>(),
             ["1", "x"].iter().map(|s| s.parse::<i32>().ok()).sum::<Option<i32>>());
    println!("{:?} {:?}", (1..4).try_fold(0i8, |a, x| a.checked_add(x * 30)), (1..9).try_fold(0i8, |a, x| a.checked_add(x * 30)));
    println!("{:?}", iter::successors(Some(1u32), |x| x.checked_mul(10)).last());
    let mut state = (0, 1);
    println!("{:?}", iter::from_fn(|| { state = (state.1, state.0 + state.1); Some(state.0) }).take(10).collect::<Vec<u32>>());
    println!("{:?}", iter::once(1).chain(iter::repeat(2).take(2)).chain(iter::empty()).collect::<Vec<_>>());
    println!("{} {} {}", (1..4).eq([1, 2, 3].iter().copied()), [1, 2].iter().lt([1, 3].iter()), (0..5).is_sorted_by_hand());
    println!("{:?}", [3.5, -1.0, 2.25].iter().cloned().fold(f64::NEG_INFINITY, f64::max));
    let (small, large): (Vec<_>, Vec<_>) = (1..7).map(|x| (x, x * x)).unzip();
    println!("{:?} {:?} {:?}", small, large, small.iter().rev().zip(&large).map(|(a, b)| a * b).collect::<Vec<i32>>());
    let mut peek = [1, 1, 2].iter().peekable();
    println!("{:?}", peek.peek());
    println!("{:?}", peek.next());
    println!("{:?} {:?}", peek.nth(1), peek.size_hint());
    let add = 10;
    let twice_and_add = compose(|x: i32| x * 2, move |x| x + add);
    let boxed: Vec<Box<dyn Fn(i32) -> i32>> = vec![Box::new(twice_and_add), Box::new(|x| -x), Box::new(i32::abs)];
    println!("{:?}", boxed.iter().map(|f| f(-4)).collect::<Vec<_>>());
    println!("{}", (0..100_000u64).filter(|x| x % 7 == 3).map(|x| x ^ (x << 3)).rev().step_by(5).sum::<u64>());
}

trait ByHand: Iterator {
    fn is_sorted_by_hand(self) -> bool;
}

impl<I: Iterator> ByHand for I where I::Item: PartialOrd + Copy {
    fn is_sorted_by_hand(mut self) -> bool {
        let mut last = match self.next() {
            Some(first) => first,
            None => return true,
        };
        self.all(|item| { let fine = last <= item; last = item; fine })
    }
}
