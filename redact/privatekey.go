package redact

import "bytes"

const (
	keyBegin     = "-----BEGIN "
	keyEnd       = "-----END "
	keyName      = "PRIVATE KEY"
	keyNameLimit = 48
	// keyBlockLimit is the length of the longest block that is found whole.
	keyBlockLimit = 32 << 10
	// A run of keyRunMin characters of base64, within the first keyRunWithin
	// after the first line, makes a block without a last line a key.
	keyRunMin    = 16
	keyRunWithin = 256
)

// matchPrivateKey finds a PEM block from the "-BEG" of its first line: to its last line, or to the
// end of the key material if that line is missing. A first line alone, which programs that handle
// keys contain, is not a block; nor are a first and a last line with something between them that no
// key has.
func matchPrivateKey(text []byte, at int) (start, end int, ok bool) {
	start = at - 4
	body, ok := keyHeader(text, start)
	if !ok {
		return 0, 0, false
	}
	block := text[body:min(len(text), body+keyBlockLimit)]
	material, footer := keyFooter(block)
	run := keyRun(material)
	switch {
	case footer > 0 && (run >= 0 || isKeyMaterial(material)):
		return start, body + footer, true
	case run < 0:
		return 0, 0, false
	}
	end, _ = keyLines(block, run)
	return start, body + end, true
}

// keyFooter divides a block at its last line. footer is the end of that line,
// or 0 if there is none.
func keyFooter(block []byte) (material []byte, footer int) {
	last := bytes.Index(block, []byte(keyEnd))
	if last < 0 {
		return block, 0
	}
	name := block[last+len(keyEnd):]
	dashes := bytes.Index(name[:min(len(name), keyNameLimit)], []byte("-----"))
	if dashes < 0 {
		return block[:last], 0
	}
	return block[:last], last + len(keyEnd) + dashes + len("-----")
}

// keyHeader checks the first line of a block and returns where it ends.
func keyHeader(text []byte, start int) (end int, ok bool) {
	if start < 0 || !bytes.HasPrefix(text[start:], []byte(keyBegin)) {
		return 0, false
	}
	name := text[start+len(keyBegin):]
	name = name[:min(len(name), keyNameLimit)]
	dashes := bytes.Index(name, []byte("-----"))
	if dashes < 0 || !bytes.Contains(name[:dashes], []byte(keyName)) {
		return 0, false
	}
	return start + len(keyBegin) + dashes + len("-----"), true
}

// keyRun returns where the first line of key material begins, or -1.
func keyRun(block []byte) int {
	for i := 0; i < min(len(block), keyRunWithin); {
		// A backslash escapes the next character, which is then not key material.
		if block[i] == '\\' {
			i += 2
			continue
		}
		end := base64Char.run(block, i, keyRunMin)
		if end-i >= keyRunMin {
			return i
		}
		i = max(end, i+1)
	}
	return -1
}

// isKeyMaterial reports whether a text consists of lines of base64, however short.
func isKeyMaterial(material []byte) bool {
	end, stop := keyLines(material, 0)
	return end > 0 && stop == len(material)
}

// keyLines returns the end of the last line of base64 of those that begin at i,
// and where something else begins.
func keyLines(block []byte, i int) (end, stop int) {
	end, indented := i, false
	for i < len(block) {
		c := block[i]
		switch {
		case base64Char[c] || c == '=':
			i++
			end, indented = i, false
		case c == '\n' || c == '\r' || indented && (c == ' ' || c == '\t'):
			i++
			indented = true
		case c == '\\':
			for i < len(block) && block[i] == '\\' {
				i++
			}
			size := escapedBreak(block[i:])
			if size == 0 {
				return end, i
			}
			i += size
			indented = true
		default:
			return end, i
		}
	}
	return end, i
}

// escapedBreak returns the length of the rest of an escaped line break, whose
// backslashes ended before the text.
func escapedBreak(text []byte) int {
	switch {
	case len(text) >= 1 && (text[0] == 'n' || text[0] == 'r'):
		return 1
	case len(text) >= 5 && string(text[:4]) == "u000" && (text[4]|0x20 == 'a' || text[4]|0x20 == 'd'):
		return 5
	}
	return 0
}

// privateKeyIsOpen reports whether a block that began may still find its end.
func privateKeyIsOpen(text []byte) bool {
	if len(text) < len(keyBegin)+keyNameLimit {
		dashes := bytes.Index(text[min(len(text), len(keyBegin)):], []byte("-----"))
		if dashes < 0 {
			return true
		}
	}
	body, ok := keyHeader(text, 0)
	if !ok || len(text)-body >= keyBlockLimit {
		return false
	}
	material, footer := keyFooter(text[body:])
	return footer == 0 && (len(material) < keyRunWithin+keyRunMin || keyRun(material) >= 0 || isKeyMaterial(material))
}
