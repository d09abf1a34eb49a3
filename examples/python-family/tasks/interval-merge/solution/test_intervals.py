import unittest

from intervals import merge


class MergeTest(unittest.TestCase):
    def test_disjoint(self):
        self.assertEqual(merge([(3, 4), (1, 2)]), [(1, 2), (3, 4)])

    def test_touching(self):
        self.assertEqual(merge([(1, 2), (2, 3)]), [(1, 3)])

    def test_reversed(self):
        with self.assertRaises(ValueError):
            merge([(2, 1)])
