import unittest

from palindrome import palindrome


class Behaviour(unittest.TestCase):
    def test_example_1(self):
        self.assertEqual(palindrome("Anna"), True)

    def test_example_2(self):
        self.assertEqual(palindrome("Ada"), True)

    def test_example_3(self):
        self.assertEqual(palindrome("Bob "), False)
