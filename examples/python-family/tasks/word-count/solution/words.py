import re
from collections import Counter


def top_words(text, n):
    if n < 0:
        raise ValueError("n must not be negative")
    words = (word.strip("'") for word in re.findall(r"(?:[^\W_]|')+", text.lower()))
    counts = Counter(word for word in words if word)
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:n]
