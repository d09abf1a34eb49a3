import unittest

from plain import pairs
from words import top_words


class Words(unittest.TestCase):
    def test_case_and_punctuation(self):
        self.assertEqual(pairs(top_words("The cat. The CAT, the dog!", 2)), [("the", 3), ("cat", 2)])

    def test_apostrophes(self):
        self.assertEqual(pairs(top_words("don't 'don't' don't", 1)), [("don't", 3)])

    def test_letters_of_all_languages(self):
        self.assertEqual(pairs(top_words("Ähre ähre naïve", 2)), [("ähre", 2), ("naïve", 1)])
