import unittest

from gcd import gcd


class Behaviour(unittest.TestCase):
    def test_example_1(self):
        self.assertEqual(gcd(12, 18), 6)

    def test_example_2(self):
        self.assertEqual(gcd(7, 5), 1)

    def test_example_3(self):
        self.assertEqual(gcd(9, 3), 3)
