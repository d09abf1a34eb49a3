import unittest

from is_even import is_even


class Behaviour(unittest.TestCase):
    def test_example_1(self):
        self.assertEqual(is_even(4), True)

    def test_example_2(self):
        self.assertEqual(is_even(7), False)

    def test_example_3(self):
        self.assertEqual(is_even(-3), False)
