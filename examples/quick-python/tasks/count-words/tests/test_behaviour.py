import unittest

from count_words import count_words


class Behaviour(unittest.TestCase):
    def test_example_1(self):
        self.assertEqual(count_words("a  b"), 2)

    def test_example_2(self):
        self.assertEqual(count_words(""), 0)

    def test_example_3(self):
        self.assertEqual(count_words(" one\ntwo three "), 3)
