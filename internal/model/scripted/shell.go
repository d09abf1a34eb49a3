package scripted

import (
	"cmp"
	"path"
	"strings"
)

// quote turns any text into a word of the shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// writeCommand writes a file exactly, whatever its last line.
func writeCommand(name, content string) string {
	command := "printf %s " + quote(content) + " > " + quote(name)
	if dir := path.Dir(name); dir != "." && dir != "/" {
		command = "mkdir -p -- " + quote(dir) + " && " + command
	}
	return command
}

// editProgram replaces the one occurrence of a text in a file. It is Perl because that is part of
// nearly every system with a shell; it reads the whole file before it writes, and fails without
// touching it where the text is missing or there twice.
const editProgram = `($p,$o,$n)=@ARGV; undef $/; open F,"<",$p or die "$p: $!\n"; $t=<F>; close F; ` +
	`$i=index($t,$o); die "$p: the text to replace is not there\n" if $i<0; ` +
	`die "$p: the text to replace is there more than once\n" if index($t,$o,$i+1)>=0; ` +
	`substr($t,$i,length $o)=$n; open F,">",$p or die "$p: $!\n"; print F $t; close F; print "edited $p\n"`

func editCommand(name, before, after string) string {
	return "perl -e " + quote(editProgram) + " " + quote(name) + " " + quote(before) + " " + quote(after)
}

func globCommand(pattern, in string) string {
	loop := `for f in ` + pattern + `; do printf '%s\n' "$f"; done`
	command := "bash -O globstar -O nullglob -c " + quote(loop)
	if in != "" {
		command = "cd -- " + quote(in) + " && " + command
	}
	return command
}

func grepCommand(pattern, in string) string {
	in = cmp.Or(in, ".")
	return "grep -rnE -e " + quote(pattern) + " -- " + quote(in)
}

// addFilePatch returns a patch that creates a file of whole lines, in the format of tools called
// apply_patch.
func addFilePatch(name, content string) string {
	var b strings.Builder
	b.WriteString("*** Begin Patch\n*** Add File: " + name + "\n")
	for line := range strings.SplitSeq(strings.TrimSuffix(content, "\n"), "\n") {
		b.WriteString("+" + line + "\n")
	}
	b.WriteString("*** End Patch\n")
	return b.String()
}

// updateFilePatch returns a patch in the same format that replaces whole lines.
func updateFilePatch(name string, before, after []string) string {
	var b strings.Builder
	b.WriteString("*** Begin Patch\n*** Update File: " + name + "\n@@\n")
	for _, line := range before {
		b.WriteString("-" + line + "\n")
	}
	for _, line := range after {
		b.WriteString("+" + line + "\n")
	}
	b.WriteString("*** End Patch\n")
	return b.String()
}

// wholeLines extends a replacement to whole lines, which is all a patch can replace, with the help
// of the latest tool result that shows the text once.
func wholeLines(results []string, before, after string) (oldLines, newLines []string, ok bool) {
	for i := len(results) - 1; i >= 0; i-- {
		shown := results[i]
		if strings.Count(shown, before) != 1 {
			continue
		}
		start := strings.Index(shown, before)
		end := start + len(before)
		lineStart := strings.LastIndexByte(shown[:start], '\n') + 1
		lineEnd := len(shown)
		if n := strings.IndexByte(shown[end:], '\n'); n >= 0 {
			lineEnd = end + n
		}
		kept := shown[lineStart:start]
		if strings.HasSuffix(before, "\n") {
			if kept+after != "" && !strings.HasSuffix(after, "\n") {
				return nil, nil, false // two lines become one, and the second is not ours
			}
			lineEnd = end - 1
			newLines = splitLines(kept + after)
		} else {
			newLines = strings.Split(kept+after+shown[end:lineEnd], "\n")
		}
		return strings.Split(shown[lineStart:lineEnd], "\n"), newLines, true
	}
	return nil, nil, false
}

// splitLines splits text whose lines are all ended.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
