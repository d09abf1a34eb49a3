package proc

import "testing"

// A program may not fill the disk, however large its limit is, and has room for its work.
func TestDiskAllowance(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for _, c := range []struct{ limit, free, want uint64 }{
		{16 * gib, 400 * gib, 16 * gib},
		{16 * gib, 20 * gib, 5 * gib},
		{16 * gib, 2 * gib, gib},
		{20 << 20, 400 * gib, 20 << 20},
	} {
		if got := diskAllowance(c.limit, c.free); got != c.want {
			t.Errorf("limit %d, %d free: %d, want %d", c.limit, c.free, got, c.want)
		}
	}
	if free := freeOnDisk([]string{t.TempDir()}); free == 0 || free > 1<<50 {
		t.Errorf("%d bytes are free", free)
	}
}
