import unittest

from range_sum import range_sum


class Behaviour(unittest.TestCase):
    def test_example_1(self):
        self.assertEqual(range_sum(1, 4), 10)

    def test_example_2(self):
        self.assertEqual(range_sum(5, 5), 5)

    def test_example_3(self):
        self.assertEqual(range_sum(3, 2), 0)
