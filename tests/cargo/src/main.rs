use std::process::exit;

fn main() {
    let values: Vec<i64> = std::env::args().skip(1).map(|word| word.parse().unwrap()).collect();
    if values.is_empty() {
        eprintln!("mean: no numbers");
        exit(3);
    }
    println!("{}", mean::mean(&values));
}
