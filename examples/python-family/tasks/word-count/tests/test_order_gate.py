import unittest

from plain import pairs
from words import top_words


class Order(unittest.TestCase):
    def test_most_frequent_first(self):
        self.assertEqual(pairs(top_words("b a b c b a", 2)), [("b", 3), ("a", 2)])

    def test_equal_counts_are_alphabetical(self):
        self.assertEqual(pairs(top_words("pear fig apple", 3)), [("apple", 1), ("fig", 1), ("pear", 1)])


if __name__ == "__main__":
    unittest.main()
