import unittest

from add import add


class Behaviour(unittest.TestCase):
    def test_example_1(self):
        self.assertEqual(add(2, 3), 5)

    def test_example_2(self):
        self.assertEqual(add(-4, 4), 0)

    def test_example_3(self):
        self.assertEqual(add(10, 7), 17)
