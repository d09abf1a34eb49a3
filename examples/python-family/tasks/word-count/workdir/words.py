from collections import Counter


def top_words(text, n):
    return Counter(text.split()).most_common(n)
