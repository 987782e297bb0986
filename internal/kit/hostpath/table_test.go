package hostpath

import "testing"

// TestSpotUnderAnotherMount: a mount that lies hidden under a later one shows nothing, however
// long its name is.
func TestSpotUnderAnotherMount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		table, path string
		want        Spot
	}{
		"hidden":              {"1 0 8:1 / / rw\n2 1 8:2 / /a/b rw\n3 1 8:3 /tree/sub /a rw\n", "/a/b/x", Spot{"8:3", "/tree/sub/b/x"}},
		"in whatever order":   {"1 0 8:1 / / rw\n3 1 8:3 /tree/sub /a rw\n2 1 8:2 / /a/b rw\n", "/a/b/x", Spot{"8:3", "/tree/sub/b/x"}},
		"control: below it":   {"1 0 8:1 / / rw\n3 1 8:3 /tree/sub /a rw\n2 3 8:2 / /a/b rw\n", "/a/b/x", Spot{"8:2", "/x"}},
		"one over the other":  {"1 0 8:1 / / rw\n2 1 8:2 / /a rw\n3 2 8:3 /t /a rw\n", "/a/x", Spot{"8:3", "/t/x"}},
		"a root of two":       {"1 0 0:2 / / rw\n2 1 8:1 / / rw\n3 2 8:2 / /a rw\n", "/a/x", Spot{"8:2", "/x"}},
		"another's namespace": {"7 3 8:1 /root / rw\n8 7 8:2 / /a rw\n", "/b", Spot{"8:1", "/root/b"}},
	} {
		if got, ok := ParseTable(c.table).SpotOf(c.path); got != c.want || !ok {
			t.Errorf("%s: %s lies at %v, want %v", name, c.path, got, c.want)
		}
	}
	if got, ok := ParseTable("8 7 8:2 / /a rw\n").SpotOf("/b"); ok {
		t.Errorf("nothing is mounted above /b, and it lies at %v", got)
	}
}

// TestTableOfOddNames: a line feed alone ends a line, and a space alone a field, so that no name hides
// what is mounted under it.
func TestTableOfOddNames(t *testing.T) {
	t.Parallel()
	for _, odd := range []string{"\r", "\v", "\f", "\u0085", "\u00a0", "\u2003", "\u2028", "\xff"} {
		table := ParseTable("1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:1 /project/sub /mnt/a" + odd + "b rw - ext4 /dev/a rw\n")
		if name, ok := table.NameUnder("/mnt/a"+odd+"b/link", "/project"); !ok || name != "/project/sub/link" {
			t.Errorf("%q: %q, %v", odd, name, ok)
		}
	}
}
