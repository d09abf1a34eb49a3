import unittest

from factorial import factorial


class Behaviour(unittest.TestCase):
    def test_example_1(self):
        self.assertEqual(factorial(5), 120)

    def test_example_2(self):
        self.assertEqual(factorial(0), 1)

    def test_example_3(self):
        self.assertEqual(factorial(1), 1)
