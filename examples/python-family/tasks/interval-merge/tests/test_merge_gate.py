import unittest

from plain import pairs
from intervals import merge


class Merge(unittest.TestCase):
    def test_overlap_and_touch(self):
        self.assertEqual(pairs(merge([(5, 7), (1, 3), (3, 4), (6, 9)])), [(1, 4), (5, 9)])

    def test_contained(self):
        self.assertEqual(pairs(merge([(1, 10), (2, 3)])), [(1, 10)])

    def test_empty(self):
        self.assertEqual(pairs(merge([])), [])
