import unittest

from average import mean


class MeanTest(unittest.TestCase):
    def test_numbers(self):
        self.assertEqual(mean([1, 2, 6]), 3)

    def test_empty(self):
        self.assertIsNone(mean([]))


if __name__ == "__main__":
    unittest.main()
