package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// account is a user of a container.
type account struct {
	uid, gid int
	groups   []int
	home     string
}

// findAccount reads a user as engines write it: a name or a number, and a group behind a colon.
func findAccount(text string) (account, error) {
	name, group, _ := strings.Cut(text, ":")
	found := account{uid: -1}
	for _, fields := range accountLines("/etc/passwd") {
		if len(fields) > 3 && (fields[0] == name || fields[2] == name) {
			name = fields[0]
			found.uid, found.gid = number(fields[2]), number(fields[3])
			if len(fields) > 5 {
				found.home = fields[5]
			}
			break
		}
	}
	if found.uid < 0 {
		if found.uid = number(name); found.uid < 0 {
			return found, fmt.Errorf("the image has no user %q", name)
		}
	}
	for _, fields := range accountLines("/etc/group") {
		if len(fields) < 3 {
			continue
		}
		if group != "" && (fields[0] == group || fields[2] == group) {
			found.gid, group = number(fields[2]), ""
		}
		if len(fields) > 3 {
			for member := range strings.SplitSeq(fields[3], ",") {
				if member == name {
					found.groups = append(found.groups, number(fields[2]))
				}
			}
		}
	}
	if group != "" {
		if found.gid = number(group); found.gid < 0 {
			return found, fmt.Errorf("the image has no group %q", group)
		}
	}
	return found, nil
}

func accountLines(path string) [][]string {
	content, _ := os.ReadFile(path) // an image without accounts has numbers only
	var lines [][]string
	for line := range strings.Lines(string(content)) {
		lines = append(lines, strings.Split(strings.TrimSpace(line), ":"))
	}
	return lines
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return -1
	}
	return n
}
