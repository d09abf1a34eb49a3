def palindrome(text):
    text = text.lower()
    return text == text[::-1]
