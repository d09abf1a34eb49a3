import unittest

from clamp import clamp


class Behaviour(unittest.TestCase):
    def test_example_1(self):
        self.assertEqual(clamp(-7, 1, 5), 1)

    def test_example_2(self):
        self.assertEqual(clamp(9, 1, 5), 5)

    def test_example_3(self):
        self.assertEqual(clamp(3, 1, 5), 3)
