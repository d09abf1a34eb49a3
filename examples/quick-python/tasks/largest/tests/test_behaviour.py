import unittest

from largest import largest


class Behaviour(unittest.TestCase):
    def test_example_1(self):
        self.assertEqual(largest([3, 9, 4]), 9)

    def test_example_2(self):
        self.assertEqual(largest([-5, -2]), -2)

    def test_example_3(self):
        self.assertEqual(largest([7]), 7)
