import unittest

from sum_digits import sum_digits


class Behaviour(unittest.TestCase):
    def test_example_1(self):
        self.assertEqual(sum_digits(123), 6)

    def test_example_2(self):
        self.assertEqual(sum_digits(0), 0)

    def test_example_3(self):
        self.assertEqual(sum_digits(9009), 18)
