package redact

// byteSet is a set of bytes, such as a class of characters.
type byteSet [256]bool

func setOf(chars ...string) *byteSet {
	var s byteSet
	for _, list := range chars {
		for i := range len(list) {
			s[list[i]] = true
		}
	}
	return &s
}

const (
	lowers = "abcdefghijklmnopqrstuvwxyz"
	uppers = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

var (
	alnum      = setOf(lowers, uppers, digits)
	upperAlnum = setOf(uppers, digits)
	wordChar   = setOf(lowers, uppers, digits, "_")
	tokenChar  = setOf(lowers, uppers, digits, "_-")
	nameChar   = setOf(lowers, uppers, digits, "_-.")
	// base64Char is both alphabets, without the padding.
	base64Char = setOf(lowers, uppers, digits, "+/-_")
	hexDigit   = setOf(digits, "abcdefABCDEF")
)

// run returns the end of the run of at most max characters of the set that begins at i.
func (s *byteSet) run(text []byte, i, max int) int {
	end := len(text)
	if max < end-i {
		end = i + max
	}
	for i < end && s[text[i]] {
		i++
	}
	return i
}

// runBefore returns the beginning of the run of at most max characters of the set that ends at i.
func (s *byteSet) runBefore(text []byte, i, max int) int {
	first := i - min(i, max)
	for i > first && s[text[i-1]] {
		i--
	}
	return i
}

func unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}
