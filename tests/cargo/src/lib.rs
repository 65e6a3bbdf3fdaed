//! A crate like any other: cargo_test.py has cargo run it and its tests with gpu-run.

pub fn mean(values: &[i64]) -> i64 {
    values.iter().sum::<i64>() / values.len() as i64
}

#[cfg(test)]
mod tests {
    use super::mean;

    #[test]
    fn of_one() {
        assert_eq!(mean(&[7]), 7);
    }

    #[test]
    fn of_many() {
        assert_eq!(mean(&(1..=1001).collect::<Vec<_>>()), 501);
    }

    #[test]
    fn of_a_map() {
        let ages: std::collections::HashMap<_, _> = [("a", 3), ("b", 5)].into();
        assert_eq!(mean(&ages.into_values().collect::<Vec<_>>()), 4);
    }

    #[test]
    #[ignore = "fails, to see that a failure is one"]
    fn is_wrong() {
        assert_eq!(mean(&[1, 2]), 2);
    }
}
