package proc

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestMountsOfAnySourceAndNameAreSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// the kernel writes blanks, tabs, line ends and backslashes in another way, and nothing else
	const table = `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
37 35 0:50 / /without\040a\040source rw - tmpfs  rw,size=4k
38 35 0:51 / / rw - overlay overlay rw,upperdir=/upper
` + "39 35 98:0 /a\u00a0b /c\r\u3000d rw - ext3 /dev/root rw\n"
	if err := os.WriteFile(filepath.Join(dir, "mountinfo"), []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []Mount{
		{"98:0", "/mnt1", "/mnt2", "ext3", "rw,errors=continue"},
		{"0:50", "/", "/without a source", "tmpfs", "rw,size=4k"},
		{"0:51", "/", "/", "overlay", "rw,upperdir=/upper"},
		{"98:0", "/a\u00a0b", "/c\r\u3000d", "ext3", "rw"},
	}
	if got := Mounts(dir); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
