def palindrome(text):
    return text == text[::-1]
