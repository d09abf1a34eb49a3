import unittest

from plain import pairs
from intervals import merge


class Manners(unittest.TestCase):
    def test_the_input_stays(self):
        given = [(5, 6), (1, 2)]
        merge(given)
        self.assertEqual(pairs(given), [(5, 6), (1, 2)])

    def test_a_reversed_pair_is_named(self):
        with self.assertRaisesRegex(ValueError, "9.*4"):
            merge([(1, 2), (9, 4)])
