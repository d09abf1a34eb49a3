import unittest

from reverse import reverse


class Behaviour(unittest.TestCase):
    def test_example_1(self):
        self.assertEqual(reverse("abc"), "cba")

    def test_example_2(self):
        self.assertEqual(reverse("ab"), "ba")

    def test_example_3(self):
        self.assertEqual(reverse(""), "")
