package audit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// personalLog has records of which two in three have personal data, some of them
// long, and returns its directory and how many there are.
func personalLog(t *testing.T) (dir string, n uint64) {
	t.Helper()
	dir, n = t.TempDir(), 2_000
	l := open(t, dir, Options{})
	for seq := range n {
		r := Record{Reason: fmt.Sprint(seq)}
		if seq%3 > 0 {
			r.User = fmt.Sprintf("user %d", seq)
		}
		if seq%500 == 7 {
			r.Task = strings.Repeat("x", 100_000)
		}
		add(t, l, r)
	}
	must(t, l.Close())
	return dir, n
}

func wantUsers(t *testing.T, dir string, seqs []uint64) {
	t.Helper()
	l := open(t, dir, Options{})
	got := 0
	for r, err := range l.Records(t.Context(), Filter{Seqs: seqs}) {
		must(t, err)
		want := ""
		if r.Seq%3 > 0 {
			want = fmt.Sprintf("user %d", r.Seq)
		}
		if r.User != want || r.Erased || (r.Seq%500 == 7) != (len(r.Task) == 100_000) {
			t.Errorf("record %d is of %q (erased: %v)", r.Seq, r.User, r.Erased)
		}
		got++
	}
	if got != len(seqs) {
		t.Errorf("%d records, want %d", got, len(seqs))
	}
	must(t, l.Close())
}

// TestPersonalDataOfFew: whichever records are asked for, each has its own data, and
// no more is read for one than a part of the file.
func TestPersonalDataOfFew(t *testing.T) {
	dir, n := personalLog(t)
	for seq := uint64(0); seq < n; seq += 41 {
		wantUsers(t, dir, []uint64{seq})
	}
	wantUsers(t, dir, []uint64{0, 1, 2, 507, 508, 1007, 1998, 1999})
	var all []uint64
	for seq := range n {
		all = append(all, seq)
	}
	wantUsers(t, dir, all)
	file, err := os.Open(filepath.Join(dir, personalName(0)))
	must(t, err)
	defer file.Close()
	text, err := os.ReadFile(file.Name())
	must(t, err)
	for seq := uint64(1); seq < n; seq += 3 {
		from, err := searchPersonal(file, seq)
		must(t, err)
		at := int64(bytes.Index(text, fmt.Appendf(nil, `{"seq":%d,`, seq)))
		if from > at || at-from > 2*cursorSpan+100_000 || from > 0 && text[from-1] != '\n' {
			t.Errorf("the search for record %d begins at %d; its line is at %d", seq, from, at)
		}
	}
}

// TestPersonalDataInDisorder: what somebody turned about is found, and what is damaged
// is of nobody.
func TestPersonalDataInDisorder(t *testing.T) {
	dir, n := personalLog(t)
	path := filepath.Join(dir, personalName(0))
	text, err := os.ReadFile(path)
	must(t, err)
	lines := bytes.SplitAfter(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	lines[len(lines)-1] = append(slices.Clone(lines[len(lines)-1]), '\n')
	slices.Reverse(lines)
	must(t, os.WriteFile(path, bytes.Join(lines, nil), 0o600))
	wantUsers(t, dir, []uint64{1, 2, 1000, n - 1})
	must(t, os.WriteFile(path, bytes.ReplaceAll(text, []byte(`{"seq":1000,`), []byte(`{"seq":?,`)), 0o600))
	wantUsers(t, dir, []uint64{998, 1001})
	l := open(t, dir, Options{})
	for r, err := range l.Records(t.Context(), Filter{Seqs: []uint64{1000}}) {
		if err != nil || !r.Erased || r.User != "" {
			t.Errorf("record 1000 is %+v, %v", r, err)
		}
	}
	must(t, l.Close())
}
