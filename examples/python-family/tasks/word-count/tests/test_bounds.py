import unittest

from plain import pairs
from words import top_words


class Bounds(unittest.TestCase):
    def test_zero_and_too_many(self):
        self.assertEqual(pairs(top_words("a b", 0)), [])
        self.assertEqual(pairs(top_words("a", 5)), [("a", 1)])
        self.assertEqual(pairs(top_words("", 5)), [])

    def test_negative(self):
        with self.assertRaises(ValueError):
            top_words("a", -1)
