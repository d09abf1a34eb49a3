def initials(name):
    return name[:1]
