import unittest

from initials import initials


class Behaviour(unittest.TestCase):
    def test_example_1(self):
        self.assertEqual(initials("ada lovelace"), "AL")

    def test_example_2(self):
        self.assertEqual(initials("Grace  Brewster Hopper"), "GBH")

    def test_example_3(self):
        self.assertEqual(initials("Plato"), "P")
